"""Order and labels that a site's own files give: MkDocs' nav, mdBook's SUMMARY.md, Docusaurus' `_category_` files."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

import yaml

from lectern.reading.configs import json_settings, yaml_settings
from lectern.reading.frontmatter import MAX_POSITION
from lectern.reading.problems import Unreadable
from lectern.reading.yamltree import texts

_SUMMARY_LINK = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\[([^\]\n]{0,300})\]\([ \t]*<?([^)>\n]{0,500}?)>?[ \t]*\)", re.MULTILINE
)
MAX_DEPTH = 20


@dataclass(slots=True)
class Navigation:
    """Files in the order of the site, and labels of files and folders. Paths are POSIX, from the book's folder."""

    order: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, label: str | None) -> None:
        """Note a page that comes next."""
        self.order.setdefault(path, len(self.order))
        if label:
            self.labels.setdefault(path, label)


def scalar(node: yaml.Node | None) -> str | None:
    """A node's single text."""
    written = texts(node) if node is not None else None
    return written[0] if written and len(written) == 1 else None


def mkdocs_navigation(nav: yaml.Node, book: str, under: str) -> Navigation:
    """MkDocs' nav: paths, `title: path` and `title: [...]`. `book` is the book's folder seen from the site's pages, or
    `under` the pages' folder seen from the book."""
    found = Navigation()
    _walk(nav, None, found, book, under, 0)
    return found


def _walk(node: yaml.Node, label: str | None, found: Navigation, book: str, under: str, depth: int) -> list[str]:
    if isinstance(node, yaml.ScalarNode):
        outside = "://" in node.value or node.value.startswith("/")
        path = None if outside else _in_book(node.value, book, under)
        if path is None:
            return []
        found.add(path, label)
        return [path]
    children: list[tuple[yaml.Node, str | None]] = []
    if isinstance(node, yaml.SequenceNode):
        children = [(item, None) for item in node.value]
    elif isinstance(node, yaml.MappingNode):
        children = [(value, scalar(key)) for key, value in node.value]
    below = [
        path
        for child, name in children
        if depth < MAX_DEPTH
        for path in _walk(child, name, found, book, under, depth + 1)
    ]
    if label and below and (shared := posixpath.commonpath([posixpath.dirname(path) for path in below])):
        found.labels.setdefault(shared, label)  # a section's title labels the folder that its pages share
    return below


def _in_book(path: str, book: str, under: str) -> str | None:
    path = posixpath.normpath(path)
    if book:
        return path.removeprefix(f"{book}/") if path.startswith(f"{book}/") else None
    return f"{under}/{path}" if under else path


def summary_navigation(text: str, under: str) -> Navigation:
    """The links of mdBook's SUMMARY.md, in order."""
    found = Navigation()
    for label, target in _SUMMARY_LINK.findall(text):
        if target and "://" not in target:
            found.add(posixpath.normpath(f"{under}/{target}" if under else target), label.strip())
    return found


def category(path: str, text: str) -> tuple[str | None, float | None]:
    """A Docusaurus `_category_` file: its folder's label and position. Raises Unreadable where it is broken."""
    if path.endswith(".json"):
        data = json_settings(text)
        label, position = data.get("label"), data.get("position")
    else:
        found = {name: scalar(value) for name, value in yaml_settings(text).items()}
        label, position = found.get("label"), found.get("position")
    try:
        where = None if position is None else float(position)
    except (ValueError, TypeError, OverflowError):
        where = MAX_POSITION
    if where is not None and not abs(where) < MAX_POSITION:
        raise Unreadable("its position is no number that a folder can have, so the file is passed over; mend it")
    return (label if isinstance(label, str) and label.strip() else None), where
