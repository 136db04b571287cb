"""Code that the type checker does not read: tests, scripts and benchmarks use names that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDERS = ("tests", "scripts", "benchmarks")
FILES = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]


def _names(file: Path) -> set[str]:
    """Every name that a module binds or imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names}
    return names


def _module(name: str) -> Path | None:
    """The file of a module of the package."""
    path = ROOT / "src" / Path(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_imported_names_exist(folder: str) -> None:
    """A script that is run once a year does not rot when a name changes."""
    missing = []
    for file in FILES:
        if not file.is_relative_to(ROOT / folder):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("lectern."):
                continue
            module = _module(str(node.module))
            for alias in node.names:
                is_known = module is not None and alias.name in _names(module)
                if not is_known and _module(f"{node.module}.{alias.name}") is None:
                    missing.append(f"{file.relative_to(ROOT)}:{node.lineno}: {node.module}.{alias.name}")

    assert missing == []
