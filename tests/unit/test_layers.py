"""CONTRIBUTING describes the code as it is: the packages, the layers, where vendor packages are imported, where to
change what. The tables there are read, and held against `src/lectern`."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src" / "lectern"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def table_below(header: str) -> list[tuple[str, str]]:
    """The rows of the table in CONTRIBUTING whose header line this is."""
    lines = CONTRIBUTING.split(f"| {header} |\n|---|---|\n", 1)[1].splitlines()
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        package_cell, right = line.strip("|").split("|", 1)
        rows.append((package_cell.strip(), right.strip()))
    return rows


def code_names(cell: str) -> list[str]:
    """What a cell writes as code."""
    return re.findall(r"`([^`]+)`", cell)


def imports_of(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Every package that a file imports, with the names that are taken from it."""
    imports: list[tuple[str, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports += [(alias.name.partition(".")[0], ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            package = (node.module or "").partition(".")[0]
            imports.append((package, tuple(alias.name for alias in node.names)))
    return imports


def importers_of(package: str) -> dict[str, set[str]]:
    """The files that import a package, by their path, with the names that each takes from it."""
    importers: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name, imported in imports_of(path):
            if name == package:
                importers.setdefault(path.relative_to(SOURCE).as_posix(), set()).update(imported)
    return importers


VENDORS = dict(table_below("package | imported in"))
CHANGES = table_below("to change | edit")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_is_imported_where_contributing_says(vendor: str) -> None:
    """A vendor package is imported below the named places, nowhere else, and in each of them."""
    [package] = code_names(vendor)
    places = [name for name in code_names(VENDORS[vendor]) if "/" in name]
    importers = list(importers_of(package))

    assert [path for path in importers if not path.startswith(tuple(places))] == []
    assert [place for place in places if not any(path.startswith(place) for path in importers)] == []


def test_the_vendors_that_matter_are_listed() -> None:
    """No row of the vendor table was dropped."""
    models = "agents openai cohere onnxruntime"
    stores = "qdrant_edge qdrant_client sqlalchemy alembic redis"
    listed = {name for row in VENDORS for name in code_names(row)}

    assert listed >= set(f"{models} {stores} fastapi uvicorn typer".split())


def test_the_app_takes_one_type_from_sqlalchemy() -> None:
    """Outside of `store` SQLAlchemy is the type of an engine and nothing else: no query is written there."""
    imported = {name for path, names in importers_of("sqlalchemy").items() if path.startswith("app/") for name in names}

    assert imported == {"AsyncEngine"}


def test_the_layers_are_those_of_the_import_rules() -> None:
    """CONTRIBUTING lists the layers that import-linter enforces, in the same order."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    enforced = [[name.strip() for name in layer.split("|")] for layer in rules["contracts"][0]["layers"]]
    listed = [code_names(line) for line in re.findall(r"^\d+\. (.*)$", CONTRIBUTING, re.MULTILINE)]

    assert listed == enforced


def test_every_package_has_its_line() -> None:
    """The table of packages names each folder of `src/lectern`, once, and no other."""
    folders = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))

    assert sorted(name.strip("`/") for name, _ in table_below("package | holds")) == folders


@pytest.mark.parametrize("change", [name for name, _ in CHANGES])
def test_what_is_to_be_edited_is_there(change: str) -> None:
    """Each file of "Where do I change …?" exists, and has the constant, class, function or field that is named."""
    cell = dict(CHANGES)[change]
    paths = [name for name in code_names(cell) if "/" in name]
    references = re.findall(r"`([\w/]+\.py)`: `(\w+)`", cell)

    assert paths
    assert [path for path in paths if not (SOURCE / path).exists()] == []
    assert references or change == "a CLI option"
    for path, name in references:
        text = (SOURCE / path).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:(?:async )?def |class )?{name}\b\s*(?:[:=(]|$)", text, re.MULTILINE), (path, name)
