"""Removes the lines that only open and close boxes and tabs, and the definitions of links. Readers do not see them,
except for the titles of boxes and tabs, which stay.

Docusaurus: `:::tip[Title]` or `:::tip Title`, and `:::`. MkDocs: `!!! note "Title"`, `??? note`, `=== "Tab"`. Links:
`[name]: https://example.org`; of the links that refer to it, `[words][name]` and `[name]`, the words stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HINTS = (":::", "!!!", "???", '=== "', '===+ "', '===! "', "]:")
_MARGIN = re.compile(r"[ \t>]{0,40}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,4}[ \t>]{0,40})?")
_BRACES = r"(?:[ \t]*\{[^{}\n]{0,300}\})?"
_COLONS = re.compile(rf":{{3,200}}(?:[ \t]*[A-Za-z][\w-]{{0,40}}(?:\[(?P<title>[^\n]{{0,300}})\])?)?{_BRACES}[ \t]*$")
_COLONS_AND_WORDS = re.compile(
    r":{3,200}(?:[A-Za-z][\w-]{0,40}|[ \t]+(?:note|tip|info|warning|danger|caution|important|details|success))"
    r"[ \t]+(?P<title>[^\s{][^\n]{0,300})$"
)
_CLASSES = r"(?:!!!|\?\?\?\+?)[ \t]*[A-Za-z][\w-]{0,50}"
_SIGNS = re.compile(rf"{_CLASSES}(?:[ \t]+(?:inline|end)){{0,2}}[ \t]*$")
_SIGNS_AND_TITLE = re.compile(rf"{_CLASSES}(?:[ \t]+[\w-]{{1,50}}){{0,5}}[ \t]+\"(?P<title>[^\n]{{0,300}})\"[ \t]*$")
_TAB = re.compile(r"===[!+]?[ \t]+\"(?P<title>[^\n]{1,300})\"[ \t]*$")
_DEFINITION = re.compile(
    r" {0,3}\[(?P<name>(?!\^)(?:[^\[\]\\\n]|\\.){1,300})\]:[ \t]*(?P<target><[^<>\n]{0,2000}>|\S{1,2000})?"
    r"(?:[ \t]+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|\([^()\n]{0,300}\)))?[ \t]*$"
)
_TARGET_LINE = re.compile(r"[ \t]{0,20}(?:<[^<>\n]{0,2000}>|[^\s<]{1,2000})[ \t]*$")
_LINK = re.compile(
    r"`{1,9}(?!`)[^`\n]{0,400}`+"  # code
    r"|(?<![!\\\]])\[(?P<words>(?:[^\[\]\\`]|\\.|`[^`\n]{0,200}`){1,300})\](?:\[(?P<name>(?!\^)[^\[\]\n]{0,300})\])?(?![(:])"
)


def without_rims(lines: list[str], code: Sequence[tuple[int, int]]) -> list[str]:
    """The lines with the rims of boxes and the definitions of links replaced by titles or nothing. `code` are the
    ranges of lines, in order, that stay as they are."""
    if not any(hint in line for line in lines for hint in _HINTS):
        return lines
    out = list(lines)
    names: set[str] = set()
    prose: list[tuple[int, int]] = []
    at = 0
    for start, end in [*code, (len(lines), len(lines))]:
        if start > at:
            prose.append((at, start))
        at = max(at, end)
    for start, end in prose:
        for number in range(start, end):
            if (shown := _shown(lines[number])) is not None:
                out[number] = shown
        names |= _drop_definitions(out, start, end)
    for start, end in prose if names else []:
        out[start:end] = _without_links("\n".join(out[start:end]), names).split("\n")
    return out


def _without_links(text: str, names: set[str]) -> str:
    """The text with the words of links to names that are defined, instead of the links. Code stays."""

    def words(match: re.Match[str]) -> str:
        name = match["name"] or match["words"]
        return match["words"] if name and _normal(name) in names else match[0]

    return _LINK.sub(words, text)


def _normal(name: str) -> str:
    return " ".join(name.casefold().split())


def _shown(line: str) -> str | None:
    """What readers see of the rim of a box or tab: its title, or nothing; None if the line is none."""
    if not any(hint in line for hint in _HINTS[:-1]):
        return None
    margin = _MARGIN.match(line)
    begin = margin.end() if margin else 0
    for pattern in (_COLONS, _COLONS_AND_WORDS, _SIGNS, _SIGNS_AND_TITLE, _TAB):
        if match := pattern.match(line, begin):
            title = (match.groupdict().get("title") or "").strip()
            return f"{line[:begin]}**{title}**" if title else line[:begin].rstrip()
    return None


def _drop_definitions(lines: list[str], start: int, end: int) -> set[str]:
    """Blank the definitions of links in a range of lines, and give their names. A definition does not interrupt a
    paragraph."""
    names: set[str] = set()
    free = True  # no paragraph is open
    number = start
    while number < end:
        line = lines[number]
        match = _DEFINITION.match(line) if free and "]:" in line else None
        wrapped = match is not None and not match["target"]
        if match and not wrapped:
            lines[number] = ""
            names.add(_normal(match["name"]))
        elif match and number + 1 < end and _TARGET_LINE.match(lines[number + 1]):
            lines[number] = lines[number + 1] = ""
            names.add(_normal(match["name"]))
            number += 1
        else:
            free = not line.strip() or line.lstrip().startswith("#")
        number += 1
    return names
