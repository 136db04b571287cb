"""Words in a component's attributes. A quiz keeps its questions there, a tab its label, a card its title: the tag goes,
but what its component shows a reader stays. Names, classes, links and styles are not words."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<key>[A-Za-z_$][\w$-]*)\s*(?P<sign>[=:])|(?P<open>[\[{(])|(?P<close>[\]})])"
    r"|(?P<text>\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|`[^`\\]*+(?:\\.[^`\\]*+)*+`)",
    re.DOTALL,
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_UNSEEN = frozenset(
    "style sx class className css id key ref src srcSet sizes href to url path d viewBox transform points width height "
    "value groupId queryString lang language mdxType components".split()
)
_SEEN = frozenset(
    "title label caption summary question answer explanation description heading header subtitle text alt option hint "
    "term definition content message prompt".split()
)


def spoken(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Spans, within a component's tag, of the texts that a reader would see; quotes not included."""
    found: list[tuple[int, int]] = []
    inside: list[str] = []  # brackets around, innermost last
    attribute = key = ""
    for token in _TOKEN.finditer(text, start, end):
        kind = token.lastgroup
        if kind == "sign":
            key = token["key"]
            if not inside and token["sign"] == "=":
                attribute = key
        elif kind == "open":
            inside.append(token[0])
        elif kind == "close":
            if inside:
                inside.pop()
            key = ""
        elif _shown(token[0][1:-1], attribute, key, in_list=bool(inside) and inside[-1] == "["):
            found.append((token.start() + 1, token.end() - 1))
    return found


def _shown(words: str, attribute: str, key: str, *, in_list: bool) -> bool:
    if attribute in _UNSEEN or key in _UNSEEN or (attribute[:2] == "on" and attribute[2:3].isupper()):
        return False
    if not _LETTERS.search(words):
        return in_list and bool(words.strip())
    return key in _SEEN or in_list or len(words.split()) > 1
