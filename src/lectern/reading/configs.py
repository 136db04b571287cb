"""A site's configuration files as data. One that is broken raises Unreadable, with a text for the report: the book is
read without it, and its author hears why it looks different."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import yaml

from lectern.domain.books import Problem
from lectern.reading.problems import Unreadable, warning
from lectern.reading.yamltree import composed, pairs

_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")  # Python 3.11 says it in the text alone


def yaml_settings(text: str, *, tags: bool = False) -> dict[str, yaml.Node]:
    """Names and values of a YAML file; none for an empty one."""
    try:
        root = composed(text, tags=tags)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else None  # not the one after the last
        raise _broken("YAML", getattr(exc, "problem", None), line) from None
    except Unreadable as exc:
        raise Unreadable(exc.message.replace("the front matter", "the file"), exc.line) from None
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise _shapeless("name: value")
    return {name: value for name, value, _ in pairs(root)}


def toml_settings(text: str) -> dict[str, Any]:
    """Names and values of a TOML file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = int(found[1]) if (found := _TOML_LINE.search(str(exc))) else None
        raise _broken("TOML", _TOML_LINE.sub("", str(exc)), line) from None
    except RecursionError:
        raise _broken("TOML", "it is nested too deep", None) from None


def json_settings(text: str) -> dict[str, Any]:
    """Names and values of a JSON file."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        raise _broken("JSON", exc.msg, exc.lineno) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
        raise _broken("JSON", "it is nested too deep, or a number is too long", None) from None
    if not isinstance(data, dict):
        raise _shapeless('{"name": value}')
    return data


def doubt(file: str, exc: Unreadable) -> Problem:
    """The report's line for a configuration file that is passed over."""
    return warning(file, exc.line, exc.message)


def _broken(kind: str, why: str | None, line: int | None) -> Unreadable:
    said = " ".join((why or "it cannot be read").split())[:120]
    mend = "mend this line" if line is not None else "mend it"
    return Unreadable(f"the file is not valid {kind} ({said}), so it is passed over; {mend}", line)


def _shapeless(shape: str) -> Unreadable:
    return Unreadable(f"the file holds no settings ({shape}), so it is passed over; write them so")
