"""Finds what an MDX page shows of other files, and its listings in JSX.

`import Setup from './_setup.mdx'` and `<Setup />` show a partial. `import code from '!!raw-loader!./x.js'` and
`<CodeBlock>{code}</CodeBlock>` show a file as a listing. `<CodeBlock>` around a template literal is a listing too: its
text is code, so it becomes a fence here, before anything reads it as Markdown or as tags. A fence with the language
`mdx-code-block` is no code: Docusaurus shows what is in it. Nothing is executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.reading.directives import LANGUAGES, Directive, Fence, Target, fences, in_order, inside
from lectern.reading.tags import TagScanner

_IMPORT = re.compile(
    r"^import[ \t]+(?:\*[ \t]+as[ \t]+)?(?P<name>[A-Za-z_$][\w$]{0,100})[ \t]+"
    r"from[ \t]+['\"](?P<path>[^'\"\n]{1,400})['\"]",
    re.MULTILINE,
)
_REQUIRE = re.compile(r"require\([ \t]*['\"](?P<path>[^'\"\n]{1,400})['\"]")
_RAW = re.compile(r"(?:!!|!|-!)?raw-loader!|\?raw$")
_OPENING = re.compile(r"<(?P<name>[A-Z][\w.]{0,100}|pre)(?=[\s/>])")
_LISTINGS = frozenset({"CodeBlock", "Code", "Highlight", "SyntaxHighlighter", "Snippet", "pre"})
_LITERAL = re.compile(r"\s{0,200}\{\s{0,200}`(?P<code>[^`\\]*+(?:\\.[^`\\]*+)*+)`\s{0,200}\}\s{0,200}", re.DOTALL)
_BRACE = re.compile(r"\s{0,200}\{")
_EXPRESSION = re.compile(r"\s{0,200}\{\s{0,200}(?P<name>[A-Za-z_$][\w$]{0,100})")
_LANGUAGE = re.compile(r"\b(?:language|lang)=[{\"'`]+([\w+#-]{1,30})|language-([\w+#-]{1,30})")
_TITLE = re.compile(r"\btitle=(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|\{[\"'`]([^\"'`\n]{1,200})[\"'`]\})")
_ESCAPED = re.compile(r"\\([`$\\{}])")
_PAGES = (".md", ".mdx")
SHOWN_FENCE = "mdx-code-block"
MAX_EXPRESSION = 2000  # characters of a tag or of an expression between tags


@dataclass(frozen=True, slots=True)
class _Page:
    """The text of a page, its listings, and what it imports by name."""

    text: str
    code: list[Fence]
    imports: dict[str, str]


def jsx_directives(text: str) -> list[Directive]:
    """The partials and listings of an MDX page, in order."""
    listings = fences(text)
    code = [fence for fence in listings if fence.info != SHOWN_FENCE]
    page = _Page(text, code, {})
    for statement in _IMPORT.finditer(text):
        if not inside(code, statement.start()):
            page.imports.setdefault(statement["name"], statement["path"])
    spans = [span for fence in listings if fence.info == SHOWN_FENCE for span in _rims(fence)]
    out = [Directive(start=start, end=end, syntax="docusaurus") for start, end in spans]
    scanner = TagScanner(text)
    at = 0
    while match := _OPENING.search(text, at):
        at = match.end()
        if fence := inside(code, match.start()):
            at = fence.end
        elif directive := _directive(page, scanner, match):
            out.append(directive)
            at = directive.end
    return in_order(out)


def _rims(fence: Fence) -> tuple[tuple[int, int], tuple[int, int]]:
    """The spans of the first and the last line of a fence."""
    return (fence.start, fence.content_start), (fence.content_end, fence.end)


def _directive(page: _Page, scanner: TagScanner, match: re.Match[str]) -> Directive | None:
    name, start = match["name"], match.start()
    path = page.imports.get(name, "")
    if name not in _LISTINGS and not path.lower().endswith(_PAGES):
        return None
    tag = scanner.at(start)
    if tag is None:
        return None
    if path.lower().endswith(_PAGES):
        closing = f"</{name}>"
        end = tag.end + len(closing) if page.text.startswith(closing, tag.end) else tag.end
        return Directive(start=start, end=end, targets=(Target(path),), syntax="docusaurus")
    return None if tag.alone else _listing(page, name, start, tag.end)


def _listing(page: _Page, name: str, start: int, content_start: int) -> Directive | None:
    """A component for listings around a template literal or an imported file."""
    closing = f"</{name}>"
    info = _info(page.text[start : min(content_start, start + MAX_EXPRESSION)])
    if literal := _LITERAL.match(page.text, content_start):
        if not page.text.startswith(closing, literal.end()):
            return None
        code, end = _ESCAPED.sub(r"\1", literal["code"]).strip("\n"), literal.end() + len(closing)
        return Directive(start=start, end=end, syntax="docusaurus", listing=info, text=code)
    content = (
        page.text[content_start : content_start + MAX_EXPRESSION] if _BRACE.match(page.text, content_start) else ""
    )
    if (close := content.find(closing)) < 0:
        return None
    required, expression = _REQUIRE.search(content, 0, close), _EXPRESSION.match(content)
    path = required["path"] if required else page.imports.get(expression["name"], "") if expression else ""
    if not _RAW.search(path):
        return None
    path = _RAW.sub("", path)
    info = info or LANGUAGES.get(path.rpartition(".")[2], "")
    end = content_start + close + len(closing)
    return Directive(start=start, end=end, targets=(Target(path),), syntax="docusaurus", listing=info)


def _info(opening: str) -> str:
    """The text after the fence: the language and the title of a listing."""
    language, title = _LANGUAGE.search(opening), _TITLE.search(opening)
    words = [language[1] or language[2]] if language else []
    if title:
        words.append(f'title="{title[1] or title[2] or title[3]}"')
    return " ".join(words)
