"""Tags of HTML and JSX in a lesson. Harmless HTML and the components that sites share (tabs, boxes, folded parts)
become marks; any other tag goes, and its visible text stays. What is a tag is decided as it is for the index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from lectern.reading.markup import Cleaned
from lectern.reading.tags import Tag, visible_spans
from lectern.rendering.elements import Element, MarkedText, margin_of

MAX_ATTRIBUTES = 5_000  # characters of a tag that are searched for attributes
_INLINE = {
    **{name: name for name in "a abbr b code del em i kbd mark s strong sub sup".split()},
    "samp": "code",
    "strike": "s",
    "tt": "code",
    "var": "i",
}
_BLOCK = frozenset(
    "blockquote dd details dl dt figcaption figure h1 h2 h3 h4 h5 h6 li ol summary table tbody td th thead tr "
    "ul".split()
)
_IN_CELLS = frozenset({"ol", "ul", "li"})  # lists may be inside the cell of a Markdown table
_BREAKS = frozenset("address article center div footer header main nav p section".split())
_BOXES = frozenset({"admonition", "callout", "aside"})
_ROW_OR_HEADING = re.compile(r"[ \t>]*[|#]")
_VALUE = (
    r"(?<![\w-])%s\s{0,20}=\s{0,20}"
    r"(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|\{\s{0,20}(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|`([^`]{0,2000})`))"
)
_ATTRIBUTE = {
    name: re.compile(_VALUE % name)
    for name in "alt class className colspan groupId href label rowspan src start title type value width height".split()
}
_SOURCE_CALL = re.compile(r"(?<![\w-])src\s{0,20}=\s{0,20}\{[^}\"']{0,100}[\"']([^\"']{1,500})[\"']")  # require("…")
_TAB_VALUE = re.compile(r"\{[^{}]{0,500}\}")
_PAIR = re.compile(r"(label|value)\s{0,20}:\s{0,20}(?:\"([^\"]{0,200})\"|'([^']{0,200})')")
_NO_SPACE_BEFORE = frozenset(" \t\n.,;:!?)]}”’'\"")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,29}")
_ESCAPE = re.compile(r"\\([\\\"'`nrt])")
_NUMBER = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class _Cut:
    """A span of the text that is removed or becomes a mark."""

    start: int
    end: int
    tag: Tag | None = None


def mark_tags(cleaned: Cleaned) -> MarkedText:
    """The text with marks for the tags that are rendered, and without all other markup."""
    writer = _Writer(cleaned)
    for cut in _cuts(cleaned):
        writer.copy(cut.start)
        writer.replace(cut)
    writer.copy(len(cleaned.original))
    return writer.finish()


def _cuts(cleaned: Cleaned) -> Iterator[_Cut]:
    end = 0
    for start, stop in cleaned.removals:
        if start < end:
            continue  # another part of the tag before it
        tag = cleaned.tags.get(start)
        end = tag.end if tag else stop
        yield _Cut(start, end, tag)


class _Writer:
    """Copies a text from left to right, and writes marks for tags."""

    def __init__(self, cleaned: Cleaned) -> None:
        self.source = cleaned.original
        self.marked = MarkedText()
        self.place = 0  # in the source
        self.number = 0  # the line there
        self.line: list[str] = []  # the parts of the line that is being written
        self.source_line = ""  # its whole line in the source
        self.raw = dict(cleaned.raw)
        self.open_divisions: list[bool] = []  # whether each open <div> is a box
        self.tab_labels: dict[str, str] = {}
        self._enter_line()

    def _enter_line(self) -> None:
        begin = self.source.rfind("\n", 0, self.place) + 1
        end = self.source.find("\n", self.place)
        self.source_line = self.source[begin : end if end >= 0 else len(self.source)][:1000]

    def copy(self, end: int) -> None:
        """Copy the source up to a position."""
        if end <= self.place:
            return
        first, *rest = self.source[self.place : end].split("\n")
        self._add(first)
        for text in rest:
            self._end_line()
            self._add(text)
        self.place = end
        if rest:
            self._enter_line()

    def _add(self, text: str) -> None:
        if text:
            self.line.append(text)

    def _end_line(self) -> None:
        self.marked.add_line("".join(self.line), self.number)
        self.number += 1
        self.line = []

    def _skip(self, end: int) -> None:
        """Go on after a cut. Its lines stay as blank lines."""
        breaks = self.source.count("\n", self.place, end)
        for _ in range(breaks):
            self._end_line()
        self.place = end
        if breaks:
            self._enter_line()

    def finish(self) -> MarkedText:
        """The whole text."""
        self._end_line()
        return self.marked

    def replace(self, cut: _Cut) -> None:
        """Write what is shown instead of a cut."""
        if cut.tag is None:
            self._join(cut)
        elif not self._written(cut, cut.tag):
            self._component(cut, cut.tag)
        self._skip(max(cut.end, self.place))

    def _join(self, cut: _Cut) -> None:
        after = self.source[cut.end : cut.end + 1]
        if self.line and not self.line[-1][-1].isspace() and after and after not in _NO_SPACE_BEFORE:
            self._add(" ")

    def _written(self, cut: _Cut, tag: Tag) -> bool:
        """Whether the tag is one that is rendered; its mark is then written."""
        in_row = _ROW_OR_HEADING.match(self.source_line) is not None
        if tag.name == "br":
            self._add(self.marked.inline_mark(Element(name="br", tag="hardbreak", whole=True)))
        elif tag.name == "img":
            self._image(cut)
        elif tag.name in _INLINE or (in_row and tag.name in _IN_CELLS):
            self._inline(cut, tag)
        elif in_row:
            return False
        elif tag.name == "hr":
            self._block(Element(name="hr", tag="hr", whole=True))
        elif tag.name == "pre" and cut.start in self.raw and not tag.closing:
            self._preformatted(cut.end, self.raw[cut.start])
        elif tag.name in _BLOCK:
            self._simple_block(cut, tag)
        elif tag.name in ("tabs", "tabitem"):
            self._tabs(cut, tag)
        elif tag.name in _BOXES or tag.name in _BREAKS:
            self._box(cut, tag)
        else:
            return False
        return True

    def _block(self, element: Element) -> None:
        """Write a block's mark. The text before it on its line ends there; the text after it begins a new line."""
        line = "".join(self.line)
        margin, begin = margin_of(line)
        if line[begin:].strip():
            self.marked.add_line(line, self.number)
            self.marked.add_block(element, margin, self.number)
        else:  # the sign of a list item stays before the mark
            self.marked.add_block(element, margin, self.number, first_margin=line[:begin])
        self.line = [margin] if margin else []

    def _attribute(self, cut: _Cut, *names: str) -> str | None:
        for name in names:
            match = _ATTRIBUTE[name].search(self.source, cut.start, min(cut.end, cut.start + MAX_ATTRIBUTES))
            if match:
                return unescape(next(value for value in match.groups() if value is not None))
        return None

    def _inline(self, cut: _Cut, tag: Tag) -> None:
        if tag.alone:
            return
        rendered = _INLINE.get(tag.name, tag.name)
        attributes = {}
        if rendered == "a" and not tag.closing:
            href = self._attribute(cut, "href")
            if not href:
                return
            attributes = {"href": href}
        elif rendered == "abbr" and not tag.closing and (title := self._attribute(cut, "title")):
            attributes = {"title": title}
        element = Element(name=tag.name, tag=rendered, ends=tag.closing, attributes=attributes)
        self._add(self.marked.inline_mark(element))

    def _image(self, cut: _Cut) -> None:
        called = _SOURCE_CALL.search(self.source, cut.start, min(cut.end, cut.start + MAX_ATTRIBUTES))
        source = self._attribute(cut, "src") or (called[1] if called else "")
        attributes = {"src": source, "alt": self._attribute(cut, "alt", "title") or ""}
        self._add(self.marked.inline_mark(Element(name="img", tag="img", whole=True, attributes=attributes)))

    def _preformatted(self, begin: int, end: int) -> None:
        text = unescape(re.sub(r"</?[A-Za-z][^<>]{0,300}>", "", self.source[begin:end]).strip("\n"))
        lines = self.source.count("\n", begin, end) + 1
        self._block(Element(name="pre", tag="pre", whole=True, text=text, lines=lines))
        self._skip(end)

    def _simple_block(self, cut: _Cut, tag: Tag) -> None:
        attributes = {}
        for name in ("colspan", "rowspan", "start"):
            value = None if tag.closing else self._attribute(cut, name)
            if value and _NUMBER.fullmatch(value):
                attributes[name] = value
        self._block(Element(name=tag.name, tag=tag.name, ends=tag.closing, attributes=attributes))

    def _tabs(self, cut: _Cut, tag: Tag) -> None:
        if tag.name == "tabs":
            self.tab_labels = dict(_tab_labels(self.source[cut.start : min(cut.end, cut.start + MAX_ATTRIBUTES)]))
            self._block(Element(name="tabs", tag="div", ends=tag.closing, attributes={"class": "tabs"}))
            return
        label = None if tag.closing else self._attribute(cut, "label")
        value = (None if tag.closing else self._attribute(cut, "value")) or ""
        label = label or self.tab_labels.get(value) or value
        attributes = {"class": "tab", "data-label": label}
        self._block(Element(name="tabitem", tag="section", ends=tag.closing, attributes=attributes))

    def _box(self, cut: _Cut, tag: Tag) -> None:
        """A box of a component, or of mdBook's `<div class="warning">`; any other division only ends a paragraph."""
        if tag.closing:
            is_box = self.open_divisions.pop() if tag.name == "div" and self.open_divisions else tag.name in _BOXES
        else:
            names = (self._attribute(cut, "class", "className") or "").split()
            is_box = tag.name in _BOXES or (tag.name == "div" and names == ["warning"])
            if tag.name == "div" and not tag.alone:
                self.open_divisions.append(is_box)
        if not is_box:
            self._end_paragraph()
            return
        kind = self._attribute(cut, "type") or ("warning" if tag.name == "div" else "note")
        kind = kind if _KIND.fullmatch(kind) else "note"
        title = self._attribute(cut, "title") or (kind.capitalize() if tag.component else None)
        attributes = {"class": f"admonition {kind}"}
        self._block(Element(name=tag.name, tag="aside", ends=tag.closing, attributes=attributes, title=title))

    def _end_paragraph(self) -> None:
        line = "".join(self.line).rstrip() + " "
        margin, begin = margin_of(line)
        if line[begin:].strip():
            for text in (line, margin.rstrip()):
                self.marked.add_line(text, self.number)
            line = margin
        self.line = [line] if line else []

    def _component(self, cut: _Cut, tag: Tag) -> None:
        """The visible text of any other tag: paragraphs where the tag begins a line, else words in the paragraph."""
        spans = visible_spans(self.source, cut.start, cut.end) if tag.component and not tag.closing else []
        for start, end in spans:
            self._skip(start)
            if cut.start in self.raw:
                text, lines = _unquoted(self.source[start:end]), self.source.count("\n", start, end) + 1
                self._block(Element(name="text", whole=True, text=text, lines=lines))
                self._skip(end)
            else:
                self._add(" ")
                self.copy(end)
                self._add(" ")
        if not spans and not tag.inline:
            self._join(cut)


def _unquoted(text: str) -> str:
    """The text of a JavaScript string."""
    return _ESCAPE.sub(lambda match: " " if match[1] in "nrt" else match[1], text)


def _tab_labels(tag: str) -> Iterator[tuple[str, str]]:
    """Labels by value, where `<Tabs values={[{label, value}]}>` has them."""
    for entry in _TAB_VALUE.findall(tag):
        pair = {name: double or single for name, double, single in _PAIR.findall(entry)}
        if "value" in pair and pair.get("label"):
            yield pair["value"], pair["label"]
