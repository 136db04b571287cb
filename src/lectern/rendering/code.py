"""Listings with the classes of Pygments; the page's style gives them colours."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_HIGHLIGHTED = 20_000  # characters; a longer listing is shown in one colour
MAX_LINE = 2_000  # characters; lexers are slow on longer lines
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")
_TITLE = re.compile(r"""\btitle=(?:"([^"]{1,200})"|'([^']{1,200})')""")
_formatter = HtmlFormatter(nowrap=True)


def listing_html(code: str, info: str = "", attributes: str = "") -> str:
    """A listing as HTML. `info` is what stands on its fence; `attributes` are added to the figure."""
    language = language_of(info)
    title = _TITLE.search(info)
    caption = f"<figcaption>{escape(title[1] or title[2])}</figcaption>" if title else ""
    name = f' data-language="{escape(language)}"' if language else ""
    body = f"<pre><code>{_coloured(code, language)}</code></pre>"
    return f'<figure class="listing"{name}{attributes}>{caption}{body}</figure>\n'


def language_of(info: str) -> str:
    """The language on a fence: `rust` of `rust,ignore title="a.rs"` and `python` of `{.python}`; "" without one."""
    match = _LANGUAGE.match(info.strip().lstrip("{.").strip())
    return match[0].lower() if match else ""


def _coloured(code: str, language: str) -> str:
    lexer = _lexer(language) if language else None
    if lexer is None or len(code) > MAX_HIGHLIGHTED or max(map(len, code.split("\n"))) > MAX_LINE:
        return escape(code)
    return str(highlight(code, lexer, _formatter))


@lru_cache(maxsize=100)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
