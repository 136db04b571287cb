"""Texts are read in one way: a pattern is compiled in one module, a way to cut words, sentences or fences has one name,
and function words are listed in `lectern.text` alone."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lectern.text.words import FUNCTION_WORDS
from tests.conftest import ROOT

SOURCE = ROOT / "src"
MIGRATIONS = "lectern.store.migrations"  # run by Alembic, not imported
UNITS = ("WORD", "TERM", "LETTER", "SENTENCE", "FENCE", "HEADING", "ABBREVIATION")
MAX_FUNCTION_WORDS = 15  # of a list with a purpose of its own: words that negate, words that begin a clause


def modules() -> Iterator[tuple[str, set[str]]]:
    """Every module of the package, with the names that it assigns itself at its top level."""
    for file in sorted((SOURCE / "lectern").rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(MIGRATIONS):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            yield name, {target for statement in body for target in _assigned(statement)}


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        yield from (node.id for node in names if isinstance(node, ast.Name))


def assigned_values() -> Iterator[tuple[str, str, Any]]:
    """Module, name and value of everything that is assigned at the top level of a module."""
    for module, names in modules():
        values: Mapping[str, Any] = vars(importlib.import_module(module))
        yield from ((module, name, values[name]) for name in sorted(names) if name in values)


PATTERNS = [(module, name, value) for module, name, value in assigned_values() if isinstance(value, re.Pattern)]


def test_no_pattern_is_compiled_twice() -> None:
    """Two modules that need the same pattern share it."""
    places: dict[tuple[Any, int], list[str]] = defaultdict(list)
    for module, name, pattern in PATTERNS:
        places[pattern.pattern, pattern.flags].append(f"{module}.{name}")

    assert PATTERNS
    assert [names for names in places.values() if len(names) > 1] == []


def test_patterns_of_words_and_sentences_have_names_of_their_own() -> None:
    """Where two patterns for words, sentences, fences or headings differ in meaning, their names say how."""
    owners: dict[str, list[str]] = defaultdict(list)
    for module, name, _ in PATTERNS:
        if any(unit in name for unit in UNITS):
            owners[name.strip("_").removesuffix("S")].append(module)

    assert {name: places for name, places in owners.items() if len(places) > 1} == {}


def written_lists(tree: ast.AST) -> Iterator[set[str]]:
    """The lists of words that a module spells out: a text that is split, or a collection of texts."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="split")):
                yield set(text.split())
            case ast.Set(elts=items) | ast.List(elts=items) | ast.Tuple(elts=items) | ast.Dict(keys=items):
                yield {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def test_function_words_are_listed_once() -> None:
    """One module spells out the function words, once; short lists have a purpose of their own."""
    owners = [
        file.relative_to(SOURCE).as_posix()
        for file in sorted((SOURCE / "lectern").rglob("*.py"))
        for words in written_lists(ast.parse(file.read_text(encoding="utf-8")))
        if len(words & FUNCTION_WORDS) > MAX_FUNCTION_WORDS
    ]

    assert owners == ["lectern/text/words.py"]
