"""Parses the configuration files of a site. A broken file raises Unreadable with a message for the report: the book is
read without the file, and the report tells the author why.

YAML is parsed without constructing objects. libyaml gives a tree of nodes, and callers take scalars as text, so no tag
builds an object, no alias is expanded, `09` is not octal and a date stays a text. Hostile YAML raises Unreadable before
a tree is built, except for aliases, which are counted in the tree; invalid YAML raises yaml.YAMLError.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

from lectern.domain.books import Problem
from lectern.reading.problems import Unreadable, warning

MAX_DEPTH = 40
MAX_ALIAS_NODES = 500  # nodes that aliases may add; more is an attack, real books add a handful
_SUSPICIOUS = re.compile(r"[&*!]|[-?:][ \t]+[-?][ \t]")  # anchors, aliases, tags, nested collections on one line
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_OBJECT_TAGS = (
    "tag:yaml.org,2002:python",
    "!!",
    "tag:yaml.org,2002:ruby",
    "tag:yaml.org,2002:java",
    "tag:yaml.org,2002:js",
)
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")  # Python 3.11 gives the line only in the message


def composed(text: str, first_line: int = 1, *, tags: bool = False, called: str = "the file") -> yaml.Node | None:
    """The root node of a document. `first_line` is the line of the file on which the text begins, and `called` what
    the text is, for messages. `tags` accepts object tags, which mkdocs.yml often has: nothing is built from them here.
    In front matter they are hostile."""
    if _SUSPICIOUS.search(text) or text.count("[") + text.count("{") > MAX_DEPTH:
        _inspect(text, first_line, tags=tags, called=called)
    loader = yaml.CSafeLoader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    if node is not None and "*" in text and _alias_nodes(node) > MAX_ALIAS_NODES:
        raise Unreadable(f"{called}'s aliases (*name) multiply or never end; write the values out", first_line)
    return node


def _inspect(text: str, first_line: int, *, tags: bool, called: str) -> None:
    """Refuse deep nesting and object tags. The event stream needs no recursion for a deep text."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + first_line
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Unreadable(f"{called} is nested deeper than {MAX_DEPTH} levels; make it flat", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        tag = getattr(event, "tag", None)
        if not tags and isinstance(tag, str) and tag.startswith(_OBJECT_TAGS):
            raise Unreadable(f"{called}'s tag {tag[:60]!r} would build an object; remove the tag", line)


def _alias_nodes(root: yaml.Node) -> float:
    """The number of nodes that aliases add when they are expanded; infinite if a node contains itself."""
    sizes: dict[int, float] = {}
    inside: set[int] = set()
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        key = id(node)
        if leaving:
            inside.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
        elif key in inside:
            return float("inf")
        elif key not in sizes:
            inside.add(key)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    return sizes[id(root)] - len(sizes)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def pairs(node: yaml.Node | None) -> list[tuple[str, yaml.Node, int]]:
    """The keys (as snake_case), values and 0-based lines of a mapping, in order, with repeats; [] for another node."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [
        (str(key.value).strip().lower().replace("-", "_"), value, key.start_mark.line)
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode)
    ]


def texts(node: yaml.Node) -> list[str] | None:
    """The texts of a scalar or of a list of scalars; [] for an empty value, None for any other node."""
    if isinstance(node, yaml.ScalarNode):
        empty = node.value.strip() == "" or (not node.style and node.value in _NULLS)
        return [] if empty else [" ".join(node.value.split())]
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return [text for item in node.value for text in (texts(item) or [])]
    return None


def yaml_settings(text: str, *, tags: bool = False) -> dict[str, yaml.Node]:
    """The names and values of a YAML file; empty for an empty file."""
    try:
        root = composed(text, tags=tags)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else None  # not beyond the last line
        raise _broken("YAML", getattr(exc, "problem", None), line) from None
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise _shapeless("name: value")
    return {name: value for name, value, _ in pairs(root)}


def toml_settings(text: str) -> dict[str, Any]:
    """The names and values of a TOML file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = int(match[1]) if (match := _TOML_LINE.search(str(exc))) else None
        raise _broken("TOML", _TOML_LINE.sub("", str(exc)), line) from None
    except RecursionError:
        raise _broken("TOML", "it is nested too deep", None) from None


def json_settings(text: str) -> dict[str, Any]:
    """The names and values of a JSON file."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        raise _broken("JSON", exc.msg, exc.lineno) from None
    except (ValueError, RecursionError):  # a number with thousands of digits, or endless nesting
        raise _broken("JSON", "it is nested too deep, or a number is too long", None) from None
    if not isinstance(data, dict):
        raise _shapeless('{"name": value}')
    return data


def doubt(file: str, exc: Unreadable) -> Problem:
    """The warning in the report for a configuration file that is ignored."""
    return warning(file, exc.line, exc.message)


def _broken(kind: str, why: str | None, line: int | None) -> Unreadable:
    reason = " ".join((why or "it cannot be read").split())[:120]
    mend = "mend this line" if line is not None else "mend it"
    return Unreadable(f"the file is not valid {kind} ({reason}), so it is passed over; {mend}", line)


def _shapeless(shape: str) -> Unreadable:
    return Unreadable(f"the file holds no settings ({shape}), so it is passed over; write them so")
