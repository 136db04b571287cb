"""The dialects of Docusaurus, MkDocs and mdBook as Markdown with marks that the common parser understands.

Boxes and tabs are written by lines: `:::note Title` in Docusaurus, `!!! note "Title"` and `=== "Tab"` with an indented
text in MkDocs, `/// note | Title` in newer MkDocs books. Tags are handled by `tags.py`. A line that includes another
file (`--8<--`) is left out, as it is on the site. Code is never changed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.domain.books import Site
from lectern.reading.blocks import cleaned_text
from lectern.rendering.elements import BLOCK_MARK, Element, MarkedText, margin_of, without_mark_characters
from lectern.rendering.tags import mark_tags

MAX_DIRECTIVE = 1_000  # characters of a line that opens a box
_SKIPPED_FENCE = re.compile(r"(`{3,99})(?=[^`]*$)|(~{3,99})")
_INDENTED = re.compile(r"(!!!|\?\?\?\+?)[ \t]+([\w-]{1,50})([^\"\n]*)(?:\"(.*)\")?[ \t]*$")
_TAB = re.compile(r"===([!+]?)[ \t]+\"(.*)\"[ \t]*$")
_DIRECTIVE = re.compile(r"(:{3,20}|/{3,20})[ \t]*(?:([A-Za-z][\w-]{0,49})(?![.\w])(.*))?$")
_TAB_LABEL = re.compile(r"::([A-Za-z][\w-]{0,49})[ \t]*$")  # a part of a directive such as ::::os-tabs
_TAB_BLOCK = re.compile(r"/{3,20}[ \t]*tab\b")
_SNIPPET = re.compile(r"-{1,5}8<-{1,5}(?:[ \t].*)?$")
_BRACKETS = re.compile(r"\[(.*)\]")
_BRACES = re.compile(r"\{[^{}]*\}")
_TITLE = re.compile(r"\btitle=\"([^\"]*)\"")
MAX_OPEN = 30  # boxes inside boxes; deeper ones are shown as text
INDENT = 4  # of the content of an MkDocs box
_FOLDED = frozenset({"details", "dropdown"})
_SIGNS = {"docusaurus": ":", "plain": ":", "mkdocs": "/", "mdbook": ""}


def readable(body: str, *, site: Site, mdx: bool) -> tuple[MarkedText, bool]:
    """The body of a lesson with marks, and whether it is MDX, in which indented lines are no code."""
    cleaned, mdx = cleaned_text(without_mark_characters(body), mdx=mdx, signs=False)
    marked = mark_tags(cleaned)
    if mdx:
        _outdent_components(marked)
    if not any(sign in marked.text for sign in (":::", "!!!", "???", "===", "///", "8<-")):
        return marked, mdx
    reader = _DirectiveReader(marked, signs=_SIGNS[site], indented=not mdx)
    for line, number in zip(marked.lines, marked.numbers, strict=True):
        reader.read(line, number)
    return reader.out, mdx


@dataclass(slots=True)
class _Content:
    """The content of a component: its lines and how far they are indented."""

    name: str
    indent: int  # of the component
    parent: _Content | None
    least: int | None = None  # the indentation of the content

    @property
    def surplus(self) -> int:
        """How much further the content is indented than the component, with that of its parents."""
        own = max(0, (self.least or 0) - self.indent)
        return own + self.parent.surplus if self.parent else own


def _outdent_components(marked: MarkedText) -> None:
    """Outdent what is inside components. In MDX that indentation means nothing, but the parser would read a second
    list item that is indented by four spaces as part of the first."""
    contents = _contents(marked)
    surpluses: dict[int, int] = {}
    for number, content in enumerate(contents):
        if content is None:
            continue
        if id(content) not in surpluses:
            surpluses[id(content)] = content.surplus
        line = marked.lines[number].expandtabs(INDENT) if marked.lines[number][:1] == "\t" else marked.lines[number]
        marked.lines[number] = line[min(surpluses[id(content)], _indent(line)) :]


def _contents(marked: MarkedText) -> list[_Content | None]:
    """For each line the component that it is directly inside of. The line of a component's mark is outside of it."""
    path: list[_Content] = []
    contents: list[_Content | None] = []
    fence = ""
    for line in marked.lines:
        words = line.strip()
        inside = path[-1] if path else None
        if words.startswith(BLOCK_MARK):
            element = marked.elements[int(words[1:])]
            if element.ends:
                depth = next((at for at in range(len(path) - 1, -1, -1) if path[at].name == element.name), len(path))
                inside = path[depth].parent if depth < len(path) else inside
                del path[depth:]
            elif not element.whole and len(path) < MAX_OPEN:
                path.append(_Content(element.name, _indent(line), inside))
        in_fence = bool(fence)
        fence = _fence_after(fence, words)
        if inside and words and not in_fence:
            inside.least = _indent(line) if inside.least is None else min(inside.least, _indent(line))
        contents.append(inside)
    return contents


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _fence_after(fence: str, words: str) -> str:
    """The signs of the listing that is open after a line; "" if none is."""
    if fence:
        return "" if words.startswith(fence) and not words.strip(fence[0] + " \t") else fence
    match = _SKIPPED_FENCE.match(words)
    return match[0] if match else ""


@dataclass(slots=True)
class _Open:
    """A box, a tab or a group of tabs that is open."""

    kind: str  # "indented", "tabs" (a group of them), "directive" or "blocks" (a group of `/// tab`)
    name: str  # pairs its two marks
    size: int  # the indentation, or the number of colons
    in_tab: bool = False  # of a directive with tabs: whether one is open


class _DirectiveReader:
    """Reads lines in order and writes marks for boxes and tabs."""

    def __init__(self, marked: MarkedText, *, signs: str, indented: bool) -> None:
        self.out = MarkedText()
        self.out.elements = marked.elements
        self.signs, self.indented = signs, indented
        self.open: list[_Open] = []
        self.fence = ""
        self.count = 0
        self.last_number = 0  # of the last line with text

    def read(self, line: str, number: int) -> None:
        """Read the next line."""
        bare = line.lstrip(" \t")
        indent = (
            len(line.expandtabs(INDENT)) - len(bare.expandtabs(INDENT)) if line[:1] == "\t" else len(line) - len(bare)
        )
        if bare and not bare.startswith(BLOCK_MARK):
            self._leave(bare, indent)
            self.last_number = number
        line = self._outdented(line)
        margin, begin = margin_of(line)
        words = line[begin:]
        fence = _fence_after(self.fence, words)
        prose = not self.fence and not fence and len(words) <= MAX_DIRECTIVE
        if prose and self._directive(words, margin, indent, number):
            return
        self.fence = fence
        self.out.add_line(line, number)

    def _outdented(self, line: str) -> str:
        depth = INDENT * sum(entry.kind == "indented" for entry in self.open)
        if not depth:
            return line
        if line[:1] == "\t":
            line = line.expandtabs(INDENT)
        return line[min(depth, len(line) - len(line.lstrip(" "))) :]

    def _leave(self, bare: str, indent: int) -> None:
        """Close the boxes that this line is not indented enough for."""
        while self.open:
            entry = self.open[-1]
            inside = (
                entry.kind == "directive"
                or (entry.kind == "indented" and indent >= entry.size + INDENT)
                or (entry.kind == "tabs" and indent == entry.size and (tab := _TAB.match(bare)) and tab[1] != "!")
                or (entry.kind == "blocks" and _TAB_BLOCK.match(bare))
            )
            if inside:
                return
            self.fence = ""
            self._close()

    def _close(self) -> None:
        entry = self.open.pop()
        depth = INDENT * sum(other.kind == "indented" for other in self.open)
        margin = " " * max(0, entry.size - depth) if entry.kind in ("indented", "tabs") else ""
        self._end(entry, margin, self.last_number)

    def _end(self, entry: _Open, margin: str, number: int) -> None:
        if entry.in_tab:
            self.out.add_block(Element(name=f"{entry.name}-tab", ends=True), margin, number)
        self.out.add_block(Element(name=entry.name, ends=True), margin, number)

    def _begin(self, entry: _Open, element: Element, margin: str, number: int) -> None:
        self.open.append(entry)
        self.out.add_block(element, margin, number)

    def _directive(self, words: str, margin: str, indent: int, number: int) -> bool:
        """Whether the line is no text but opens or closes something; its marks are then written."""
        match = _DIRECTIVE.match(words)
        if match and match[1][0] not in self.signs:
            match = None
        if len(self.open) >= MAX_OPEN and not (match and not match[2]):
            return False
        if self.indented and (box := _INDENTED.match(words)):
            self._indented_box(box, margin, indent, number)
        elif self.indented and (tab := _TAB.match(words)):
            self._indented_tab(tab[2], margin, indent, number)
        elif match:
            return self._signed(match, margin, number)
        elif (label := _TAB_LABEL.match(words)) and self.open and self.open[-1].name.endswith("-tabs"):
            self._next_tab(self.open[-1], label[1], margin, number)
        elif _SNIPPET.match(words):
            self.out.add_line("", number)
        else:
            return False
        return True

    def _new_name(self, kind: str) -> str:
        self.count += 1
        return f"{self.count}-{kind}"

    def _indented_box(self, match: re.Match[str], margin: str, indent: int, number: int) -> None:
        kind = match[2].lower()
        rest = match[3].strip()
        title = match[4]
        if title is None and " " in rest:
            title = rest
        name = self._new_name("box")
        element = box_element(name, kind, title, folded=match[1][0] == "?", open_=match[1].endswith("+"))
        self._begin(_Open("indented", name, indent), element, margin, number)

    def _indented_tab(self, label: str, margin: str, indent: int, number: int) -> None:
        if not (self.open and self.open[-1].kind == "tabs" and self.open[-1].size == indent):
            name = self._new_name("group")
            self._begin(_Open("tabs", name, indent), tabs_element(name), margin, number)
        name = self._new_name("tab")
        self._begin(_Open("indented", name, indent), tab_element(name, label), margin, number)

    def _signed(self, match: re.Match[str], margin: str, number: int) -> bool:
        size, kind = len(match[1]), (match[2] or "").lower()
        if not kind:
            return self._close_signed(size, margin, number)
        title = _directive_title(match[3])
        if kind.endswith("tabs"):
            name = self._new_name("tabs")
            element = tabs_element(name)
        elif kind == "tab" and self.signs == "/":
            name, element = self._tab_block(title or "", margin, number)
        else:
            name = self._new_name("box")
            element = box_element(name, kind, title, folded=kind in _FOLDED)
        self._begin(_Open("directive", name, size), element, margin, number)
        return True

    def _tab_block(self, label: str, margin: str, number: int) -> tuple[str, Element]:
        """`//// tab | Label`: neighbours form a group."""
        if not (self.open and self.open[-1].kind == "blocks"):
            group = self._new_name("group")
            self._begin(_Open("blocks", group, 0), tabs_element(group), margin, number)
        name = self._new_name("tab")
        return name, tab_element(name, label)

    def _close_signed(self, size: int, margin: str, number: int) -> bool:
        sizes = [(place, entry.size) for place, entry in enumerate(self.open) if entry.kind == "directive"]
        equal = [place for place, length in sizes if length == size]
        shorter = [place for place, length in sizes if length < size]
        if not equal and not shorter:
            return False
        place = max(equal or shorter)
        for entry in reversed(self.open[place:]):
            self._end(entry, margin, number)
        del self.open[place:]
        return True

    def _next_tab(self, entry: _Open, label: str, margin: str, number: int) -> None:
        if entry.in_tab:
            self.out.add_block(Element(name=f"{entry.name}-tab", ends=True), margin, number)
        entry.in_tab = True
        self.out.add_block(tab_element(f"{entry.name}-tab", label), margin, number)


def _directive_title(rest: str) -> str | None:
    """The title after the name of a directive: `[Title]`, ` Title`, ` | Title` or `{title="Title"}`."""
    if brackets := _BRACKETS.match(rest):
        return brackets[1]
    named = _TITLE.search(rest)
    words = _BRACES.sub("", rest).strip().removeprefix("|").strip()
    return words or (named[1] if named else None)


def box_element(name: str, kind: str, title: str | None, *, folded: bool = False, open_: bool = False) -> Element:
    """A box. Without a title its kind is shown; an empty title shows none."""
    attributes = {"class": f"admonition {kind}"}
    if folded and open_:
        attributes["open"] = ""
    words = title if title is not None else kind.replace("-", " ").replace("_", " ").capitalize()
    tag = "details" if folded else "aside"
    return Element(name=name, tag=tag, attributes=attributes, title=words if words or folded else None)


def tabs_element(name: str) -> Element:
    """A group of tabs."""
    return Element(name=name, tag="div", attributes={"class": "tabs"})


def tab_element(name: str, label: str) -> Element:
    """One tab."""
    return Element(name=name, tag="section", attributes={"class": "tab", "data-label": label})
