"""Counts names that say nothing: pronouns and participles that are bound to values (`one`, `found`, `held`, `told` …).

    python scripts/count_names.py [FOLDER ...] [--list]

A bound name is a variable, a parameter, a loop variable, an attribute or field that is assigned, a function or a class.
Each counts once in the scope that binds it. Without a folder `src/lectern` is counted.
With --list every such name is printed with its place.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

EMPTY_NAMES = frozenset(
    "one ones other others another some both each every all any none it its they them their he she him his her "
    "this that these those mine yours ours own who whom what which whoever whatever "
    "found held told said given meant asked kept taken made known seen left gone done wanted needed used begun ended "
    "tried shown sent got put read_ written chosen named called added removed changed moved brought looked "
    "counted".split()
)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module | ast.Lambda


def bound_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module binds, with its line; twice in one scope is once."""
    todo: list[Scope] = [tree]
    while todo:
        scope = todo.pop()
        names: dict[str, int] = {}
        for node, inner in _own_nodes(scope):
            if inner:
                todo.append(node)  # type: ignore[arg-type]  # a scope by `inner`
            for name in _binds(node):
                names.setdefault(name, node.lineno)  # type: ignore[attr-defined]  # every node that binds has a line
        yield from names.items()


def _own_nodes(scope: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes of a scope without those of the scopes inside it; and whether each opens one."""
    for node in ast.iter_child_nodes(scope):
        inner = isinstance(node, Scope)
        yield node, inner
        if not inner:
            yield from _own_nodes(node)


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.arg():
            yield node.arg
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
            yield node.attr
        case ast.ExceptHandler() if node.name:
            yield node.name
        case ast.MatchAs() | ast.MatchStar() if node.name:
            yield node.name
        case _:
            return


def main() -> None:
    """Print the share by package, of several folders by folder; with --list print every name."""
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    bound: Counter[str] = Counter()
    empty: Counter[str] = Counter()
    roots = [Path(folder) for folder in folders or ["src/lectern"]]
    files = [(folder, file) for folder in roots for file in sorted(folder.rglob("*.py"))]
    for root, file in files:
        package = file.relative_to(root).parts[0] if len(roots) == 1 else str(root)
        for name, line in bound_names(ast.parse(file.read_text(encoding="utf-8"))):
            bound[package] += 1
            if name.strip("_").lower() in EMPTY_NAMES:
                empty[package] += 1
                if "--list" in options:
                    print(f"{file}:{line}: {name}")
    for package in sorted(bound):
        print(f"{package:<16} {empty[package]:>5} of {bound[package]:>6}  {empty[package] / bound[package]:6.1%}")
    total, name_count = sum(empty.values()), sum(bound.values())
    print(f"{'all':<16} {total:>5} of {name_count:>6}  {total / name_count:6.1%}")


if __name__ == "__main__":
    main()
