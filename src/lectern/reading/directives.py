r"""Finds the directives of a page that name another file to be shown in their place, and selects the lines that they
name. Nothing is read here.

mdBook: `{{#include file:2:10}}`, `{{#rustdoc_include file:anchor}}`, `{{#playground file.rs}}`, and `\{{#…}}` for the
characters themselves. MkDocs: `--8<-- "file:section"` and its form over several lines (pymdownx.snippets), `{! file !}`
(mdx_include) and `{* file ln[2:10] *}` (markdown_include_variants). Like the site generators, all of them find their
directives in code too.

Every pattern is limited in length, so a hostile page takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from lectern.reading.problems import Unreadable

Syntax = Literal[
    "mdbook",
    "snippets",
    "mdx_include",
    "variants",
    "docusaurus",
    "wiki",
    "code_documentation",
    "templates",
    "variables",
]
Range = tuple[int, int | None]  # first and last line, from 1; None: to the end
NumberedLine = tuple[int, str]  # its number in the file, from 1

_MDBOOK = re.compile(r"(?P<escape>\\)?\{\{[ \t]*#(?P<name>[a-z_]{1,30})[ \t]+(?P<target>[^}\n]{1,500})\}\}")
_MDBOOK_NAMES = frozenset({"include", "rustdoc_include", "playground", "playpen", "title"})
_SNIPPET = re.compile(
    r"^[ \t]*(?P<escape>;*)-{1,9}8<-{1,9}(?:[ ]+(?P<quote>[\"'])(?P<target>[^\"'\n]{1,500})(?P=quote))?[ \t]*$",
    re.MULTILINE,
)
_MDX_INCLUDE = re.compile(
    r"(?P<escape>\\)?\{!(?P<signs>[-+>]{0,2})[ \t]{0,20}(?P<target>[^\s\[\]|!][^\n\[\]|!]{0,500}?)[ \t]{0,20}"
    r"(?:\[[ \t]{0,20}ln:(?P<lines>[^\]\n]{1,200})\][ \t]{0,20})?(?:\|[^\n!]{0,40})?!\}"
)
_VARIANT = re.compile(
    r"^[ \t]*\{\*[ \t]+(?P<target>[^\s*]{1,500})(?P<options>[^\n]{0,500}?)[ \t]{0,20}\*\}[ \t]*$", re.MULTILINE
)
_VARIANT_LINES = re.compile(r"\bln\[([^\]]{1,200})\]")
_VARIANT_TITLE = re.compile(r"\btitle\[[\"']([^\"'\]]{1,200})[\"']\]")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MDBOOK_MARK = re.compile(r"\bANCHOR(_END)?:[ \t]*([\w-]{1,200})")
_SNIPPET_MARK = re.compile(r"-{1,9}8<-{1,9}[ \t]{0,20}\[[ \t]{0,20}(start|end)[ \t]{0,20}:[ \t]{0,20}([\w.-]{1,200})")
_EMBED = re.compile(
    r"(?<![^\s|(>*_])!\[\[(?P<name>[^\[\]\n|#]{0,300})(?P<section>#[^\[\]\n|]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]"
)
_FILE_SUFFIX = re.compile(r"[a-z][a-z0-9]{0,5}")
_FENCE_WITH_INFO = re.compile(r"^[ \t]{0,20}(?P<marks>`{3,99}|~{3,99})(?P<info>[^\n]{0,200}).*$", re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
MAX_RANGES = 50
MAX_FOUND = 20_000  # directives of one kind on a page
MAX_HEADING = 1000  # characters
TOO_LARGE = "the page would become larger than a lesson may be; split the page"
LANGUAGES = {
    "bash": "bash", "c": "c", "cpp": "cpp", "cs": "csharp", "css": "css", "go": "go", "html": "html", "java": "java",
    "js": "js", "json": "json", "jsx": "jsx", "kt": "kotlin", "php": "php", "py": "python", "rb": "ruby", "rs": "rust",
    "sh": "bash", "sql": "sql", "swift": "swift", "toml": "toml", "ts": "ts", "tsx": "tsx", "xml": "xml",
    "yaml": "yaml", "yml": "yaml",
}  # fmt: skip


class Fence(NamedTuple):
    """A listing between fences."""

    start: int
    end: int
    info: str
    content_start: int  # the end of its first line
    content_end: int  # the start of its last line


@dataclass(frozen=True, slots=True)
class Target:
    """A file and which of its lines are meant."""

    path: str  # as it is written
    ranges: tuple[Range, ...] = ()  # empty: every line
    section: str = ""  # the name of an anchor or section


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """A span of a page, and what is shown instead of it: lines of files, or a text, or nothing."""

    start: int
    end: int
    syntax: Syntax
    targets: tuple[Target, ...] = ()
    listing: str | None = None  # the lines become a listing with this text after its fence
    text: str = ""  # shown where there is no target
    name: str = ""  # of something that is made when the site is built


def directives(text: str, syntaxes: Iterable[Syntax]) -> list[Directive]:
    """The directives of a text in order, for those syntaxes that are lines or brackets with a path."""
    finders: dict[Syntax, Callable[[str], Iterator[Directive]]] = {
        "mdbook": _mdbook,
        "snippets": _snippets,
        "mdx_include": _mdx_includes,
        "variants": _variants,
        "wiki": _embeds,
    }
    matches = [match for syntax in syntaxes if syntax in finders for match in islice(finders[syntax](text), MAX_FOUND)]
    return in_order(matches)


def in_order(matches: Iterable[Directive]) -> list[Directive]:
    """Directives in the order of the text, without those that begin inside another."""
    out: list[Directive] = []
    for directive in sorted(matches, key=lambda directive: directive.start):
        if not out or directive.start >= out[-1].end:
            out.append(directive)
    return out


def _mdbook(text: str) -> Iterator[Directive]:
    if "{{" not in text:
        return
    for match in _MDBOOK.finditer(text):
        start, end = match.span()
        if match["escape"]:
            yield Directive(start=start, end=end, syntax="mdbook", text=match[0][1:])
        elif match["name"] == "title":
            yield Directive(start=start, end=end, syntax="mdbook")
        elif match["name"] in _MDBOOK_NAMES:
            words = match["target"].split()
            targets = tuple(_target(word) for word in words[:1])
            listing = ",".join(["rust", *words[1:]]) if match["name"].startswith("play") else None
            yield Directive(start=start, end=end, targets=targets, syntax="mdbook", listing=listing)


def _target(text: str) -> Target:
    """A path with the lines or the section after it: `x.rs:2:10`, `x.rs:7`, `x.rs::10`, `x.rs:2:,9:12`, `x.rs:main`.
    An address stays whole."""
    path, colon, rest = text.strip().partition(":")
    if rest.startswith("//"):
        return Target(text.strip())
    if not colon or not rest.strip(":"):
        return Target(path)
    ranges = [_colon_range(part) for part in rest.split(",")[:MAX_RANGES]]
    if all(ranges):
        return Target(path, tuple(lines for lines in ranges if lines))
    return Target(path, (), rest.partition(":")[0].strip())


def _colon_range(text: str) -> Range | None:
    first, colon, last = (part.strip() for part in text.partition(":"))
    if any(part and not _NUMBER.fullmatch(part) for part in (first, last)) or not (first or last):
        return None
    begin = int(first or 1)
    return begin, (int(last) if last else None) if colon else begin


def _snippets(text: str) -> Iterator[Directive]:
    if "8<" not in text:
        return
    opening: re.Match[str] | None = None
    for match in _SNIPPET.finditer(text):
        indent = len(match[0]) - len(match[0].lstrip(" \t"))
        start, end = match.start() + indent, match.end()
        if opening is not None:
            if not match["target"]:
                yield _snippet_block(text, opening, end)
                opening = None
        elif match["escape"]:
            yield Directive(start=start, end=end, syntax="snippets", text=text[start + 1 : end])
        elif match["target"]:
            yield Directive(start=start, end=end, targets=(_target(match["target"]),), syntax="snippets")
        else:
            opening = match


def _snippet_block(text: str, opening: re.Match[str], end: int) -> Directive:
    """The form with one file a line; a line that begins with `;` is left out."""
    start = opening.end() - len(opening[0].lstrip(" \t"))
    names = [line.strip() for line in text[opening.end() : end].split("\n")[1:-1]]
    targets = tuple(_target(name) for name in names if name and not name.startswith(";"))
    return Directive(start=start, end=end, targets=targets, syntax="snippets")


def _mdx_includes(text: str) -> Iterator[Directive]:
    if "{!" not in text:
        return
    for match in _MDX_INCLUDE.finditer(text):
        start, end = match.span()
        if match["escape"]:
            yield Directive(start=start, end=end, syntax="mdx_include", text=match[0][1:])
            continue
        target = Target(match["target"], _ranges((match["lines"] or "").replace("-", ":")))
        yield Directive(start=start, end=end, targets=(target,), syntax="mdx_include")


def _variants(text: str) -> Iterator[Directive]:
    if "{*" not in text:
        return
    for match in _VARIANT.finditer(text):
        lines, title = _VARIANT_LINES.search(match["options"]), _VARIANT_TITLE.search(match["options"])
        info = LANGUAGES.get(match["target"].rpartition(".")[2], "")
        yield Directive(
            start=match.end() - len(match[0].lstrip(" \t")),
            end=match.end(),
            targets=(Target(match["target"], _ranges(lines[1] if lines else "")),),
            syntax="variants",
            listing=f'{info} title="{title[1]}"' if title else info,
        )


def _embeds(text: str) -> Iterator[Directive]:
    """What Obsidian shows of notes: `![[Note]]`, `![[Note#Heading]]`, `![[Note#^block]]`, and without a name of the
    same note. Pictures are left out. In tables `|` is escaped."""
    if "![[" not in text:
        return
    code = fences(text)
    for match in _EMBED.finditer(text):
        start, end = match.span()
        if inside(code, start) or text[start - 1 : start] == "`":
            continue
        name, section = match["name"].rstrip("\\").strip(), (match["section"] or "").rpartition("#")[2]
        section = section.rstrip("\\").strip()
        suffix = name.rpartition(".")[2].lower() if "." in name else ""
        note = not suffix or not _FILE_SUFFIX.fullmatch(suffix) or suffix in ("md", "markdown")
        targets = (Target(name, (), section),) if note and (name or section) else ()
        yield Directive(start=start, end=end, syntax="wiki", targets=targets)


def fences(text: str) -> list[Fence]:
    """The fences of a text in order: where each begins and ends, and what is written after its first marks."""
    out: list[Fence] = []
    opening: re.Match[str] | None = None
    for match in _FENCE_WITH_INFO.finditer(text):
        if opening is None:
            if match["marks"][0] != "`" or "`" not in match["info"]:
                opening = match
        elif match["marks"].startswith(opening["marks"]) and not match["info"].strip():
            out.append(Fence(opening.start(), match.end(), opening["info"].strip(), opening.end(), match.start()))
            opening = None
    if opening is not None:
        out.append(Fence(opening.start(), len(text), opening["info"].strip(), opening.end(), len(text)))
    return out


def inside(spans: Sequence[Fence], at: int) -> Fence | None:
    """The fence that a position is in."""
    number = bisect_right(spans, at, key=lambda fence: fence.start) - 1
    return spans[number] if number >= 0 and at < spans[number].end else None


def _ranges(text: str) -> tuple[Range, ...]:
    return tuple(lines for part in text.split(",")[:MAX_RANGES] if (lines := _colon_range(part)))


def selected(lines: list[str], target: Target, syntax: Syntax, limit: int) -> list[NumberedLine]:
    """The lines of a file that a directive shows. Raises Unreadable if there are none such, or if ranges, which may
    overlap, name more than `limit` lines."""
    if target.section and syntax == "wiki":
        return (
            _block(lines, target.section) if target.section.startswith("^") else _under_heading(lines, target.section)
        )
    if target.section:
        return _section(lines, target.section, syntax)
    if not target.ranges:
        marked = syntax == "snippets"
        return [(number, line) for number, line in enumerate(lines, 1) if not (marked and _SNIPPET_MARK.search(line))]
    ends = [len(lines) if last is None else min(last, len(lines)) for _, last in target.ranges]
    spans = [range(max(first, 1), end + 1) for (first, _), end in zip(target.ranges, ends, strict=True)]
    if not any(spans):
        raise Unreadable(f"it has only {len(lines)} lines; mend the numbers of the lines")
    if sum(map(len, spans)) > limit:
        raise Unreadable(TOO_LARGE)
    return [(number, lines[number - 1]) for span in spans for number in span]


def _section(lines: list[str], name: str, syntax: Syntax) -> list[NumberedLine]:
    """The lines between the marks with the section's name, without marks. A name may be opened several times."""
    mark, opening = (_SNIPPET_MARK, "start") if syntax == "snippets" else (_MDBOOK_MARK, None)
    out: list[NumberedLine] = []
    inside = marked = False
    for number, line in enumerate(lines, 1):
        match = mark.search(line)
        if match is None:
            if inside:
                out.append((number, line))
        elif match[2] == name:
            inside = match[1] == opening
            marked = True
    if not marked:
        raise Unreadable(f"nothing in it is marked {name!r}; mend the name, or mark the lines")
    return out


def _under_heading(lines: list[str], title: str) -> list[NumberedLine]:
    """A heading and the lines below it, up to the next heading of its level."""
    out: list[NumberedLine] = []
    level = 0
    for number, line in enumerate(lines, 1):
        heading = _HEADING.match(line[:MAX_HEADING])
        if heading and level and len(heading[1]) <= level:
            break
        if heading and not level and heading[2].strip().casefold() == title.casefold():
            level = len(heading[1])
        if level:
            out.append((number, line))
    if not out:
        raise Unreadable(f"it has no heading {title!r}; mend the name")
    return out


def _block(lines: list[str], mark: str) -> list[NumberedLine]:
    """The paragraph or item that ends with a block's mark."""
    for number, line in enumerate(lines, 1):
        if line.rstrip().endswith((f" {mark}", f"]]{mark}")) or line.strip() == mark:
            last = number - 1 if line.strip() == mark else number
            first = last
            while first > 1 and lines[first - 2].strip() and not _ITEM.match(lines[first - 1]):
                first -= 1
            return [(at, lines[at - 1]) for at in range(max(first, 1), last + 1)]
    raise Unreadable(f"it has no block {mark!r}; mend the name")
