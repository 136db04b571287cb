"""What is done in one place and nowhere else: parts are opened, filters are built, the index is written, filters get
their names in requests, the environment is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from lectern.schemas.scope import SCOPE_FIELDS
from tests.conftest import ROOT

SOURCE = ROOT / "src" / "lectern"
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}


def nodes(*packages: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node of the code below these packages, with its file; without a package, of all code."""
    for file, tree in TREES.items():
        if not packages or file.startswith(tuple(f"{package}/" for package in packages)):
            yield from ((file, node) for node in ast.walk(tree))


def called(node: ast.AST) -> str:
    """The last part of the name of what is called, or nothing."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def files_that_call(name: str) -> set[str]:
    """The files in which something of this name is called."""
    return {file for file, node in nodes() if called(node) == name}


def keywords(node: ast.AST) -> set[str | None]:
    """The names of a call's keyword arguments."""
    return {keyword.arg for keyword in node.keywords} if isinstance(node, ast.Call) else set()


def importers_of(module: str) -> set[str]:
    """The files that import a module, or something of it, from outside of its package."""
    importers = set()
    for file, node in nodes():
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(origin), names=names):
                imported = [f"{origin}.{alias.name}" for alias in names]
            case _:
                continue
        if any(f"{name}.".startswith(f"lectern.{module}.") for name in imported):
            importers.add(file)
    return {file for file in importers if not file.startswith(f"{module.partition('.')[0]}/")}


def test_a_database_is_opened_in_the_composition_root() -> None:
    """`app/open.py` alone opens databases and makes the factory of embedders and indexes."""
    assert files_that_call("open_database") == {"app/open.py"}
    assert files_that_call("PartFactory") == {"app/open.py"}
    assert files_that_call("Application") == {"app/open.py"}


def test_adapters_are_built_in_app() -> None:
    """Above the adapters `app` alone imports them; measurements may run a network by itself."""
    assert {file for file in importers_of("store") if not file.startswith("app/")} == set()
    assert importers_of("index.edge") | importers_of("index.server") | importers_of("index.nodes") == {
        "app/factories.py"
    }
    assert {
        file for file in importers_of("models") if not file.startswith(("app/factories.py", "evals/", "cli/eval"))
    } == set()


def test_no_query_is_run_outside_of_the_store() -> None:
    """SQL is written and run in `store`."""
    assert {file for file in files_that_call("execute") if not file.startswith("store/")} == set()


def test_the_index_is_written_by_one_function() -> None:
    """A change reaches the index through the step that wrote its intent to the ledger before."""
    writers = [file for file, node in nodes() if called(node) == "replace" and "commit" in keywords(node)]

    assert writers == ["ingestion/replacing.py"]


def test_a_readers_filters_are_built_where_they_are_checked() -> None:
    """Elsewhere a filter names a book, or one lesson of it; `schemas/scope.py` reads back what was applied."""
    builders = {
        file
        for file, node in nodes()
        if called(node) == "ChunkFilter" and keywords(node) - {"book_id", "parent_doc_id"}
    }

    assert builders == {"retrieval/scope.py", "schemas/scope.py"}


def test_the_wire_names_of_filters_are_spelt_in_schemas() -> None:
    """Everywhere else a filter has the name that Python programs use."""
    wire = {field.wire for field in SCOPE_FIELDS if field.wire != field.name}
    spelt = set()
    for file, node in nodes():
        match node:
            case ast.Constant(value=str(word)) | ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=word):
                if word in wire:
                    spelt.add(file)

    assert wire
    assert {file for file in spelt if not file.startswith("schemas/")} == set()


def test_the_environment_is_read_by_the_settings() -> None:
    """A part gets its settings from `app`; `models/agent.py` switches off the tracing of an SDK, `cli/main.py` tells a
    library how many threads it may start, and `app/traces.py` checks a variable that another SDK reads by itself."""
    readers = {
        file
        for file, node in nodes()
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in {"os.environ", "os.getenv", "getenv"}
    }

    assert readers == {"app/home.py", "app/settings.py", "app/traces.py", "cli/main.py", "models/agent.py"}


def test_other_exceptions_stay_inside() -> None:
    """An exception that is no `LecternError` is for code of the package: here are those that there are."""
    kinds = {
        node.name
        for file, node in nodes()
        if isinstance(node, ast.ClassDef) and file != "domain/errors.py"
        if any(ast.unparse(base).endswith(("Exception", "Error")) for base in node.bases)
    }

    assert kinds == {"FileChanged", "Unreadable", "TooLong"}


def test_ports_have_no_behaviour() -> None:
    """A port says what an adapter does; a method has a docstring and no statement."""
    bodies = [
        f"{file}: {node.name}"
        for file, node in nodes("ports")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 1
    ]

    assert bodies == []


@pytest.mark.parametrize("package", ["domain", "ports"])
def test_values_are_frozen_and_made_by_name(package: str) -> None:
    """What all layers share cannot be changed by one of them, and no argument is mistaken for another."""
    loose = [
        f"{file}: {node.name}"
        for file, node in nodes(package)
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if called(decorator) == "dataclass" and not {"frozen", "kw_only"} <= keywords(decorator)
    ]

    assert loose == []
