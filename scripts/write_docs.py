"""Writes the pages that are made from the code: docs/cli.md, docs/settings.md, docs/http.md, and the fields in
docs/design.md.

`make docs` runs it; a test holds the pages against what it would write, so a command, setting or endpoint that is not
documented fails the suite.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer.main
from pydantic import BaseModel

from lectern.api.app import unguarded_app
from lectern.app.settings import Settings, variables
from lectern.cli.main import app

DOCS = Path(__file__).resolve().parent.parent / "docs"


def cli_page() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "Generated from the code by `make docs`.", ""]
    codes = "0 worked, 2 a mistake that you can fix, 3 a provider or server failed, 4 refused (`ask`), 130 interrupted"
    lines += [f"Exit codes: {codes}.", ""]
    for name, command in sorted(_commands(group, "lectern")):
        lines += [f"## {name}", "", command.help.split("\n\n")[0], "", "| | | default |", "|---|---|---|"]
        for parameter in command.params:
            option = parameter.opts[0].startswith("-")
            label = f"`{'`, `'.join(parameter.opts)}`" if option else f"`{parameter.name.upper()}`"
            default = (
                "" if parameter.default in (None, False) or parameter.required else _default_text(parameter.default)
            )
            lines.append(f"| {label} | {parameter.help} | {default} |")
        lines.append("")
    return "\n".join(lines)


def _default_text(default: object) -> str:
    """A default as it is typed."""
    if isinstance(default, list):
        return ", ".join(map(_default_text, default))
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # click's, which typer hides
    """Every command below a group, by its full name."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def settings_page() -> str:
    """Every variable that is read."""
    lines = [
        "# Settings",
        "",
        "Generated from the code by `make docs`. Read from the environment, then from `.env`.",
        "",
    ]
    lines += [
        "An unknown name that begins with `LECTERN_` is an error at start-up.",
        "",
        "| variable | | default |",
        "|---|---|---|",
    ]
    for (variable, meaning), field in zip(variables().items(), Settings.model_fields.values(), strict=True):
        default = "" if field.default in (None, ()) else f"`{field.default}`"
        lines.append(f"| `{variable}` | {meaning} | {default} |")
    return "\n".join([*lines, ""])


def http_page() -> str:
    """Every endpoint."""
    described = unguarded_app().openapi()
    lines = [
        "# HTTP",
        "",
        "Generated from the code by `make docs`. The running server has the full description at `/docs`.",
        "",
    ]
    lines += ["Errors are `application/problem+json`. A refusal is not an error: it is a reply with status 200.", ""]
    lines += ["| | | |", "|---|---|---|"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            does = " ".join(operation["description"].split())
            lines.append(f"| `{method.upper()} {path}` | {does} | `{operation['operationId']}` |")
    lines += ["", "Response headers; `openapi.json` lists them for each operation:", "", "| | |", "|---|---|"]
    lines += [f"| `{name}` | {header['description']} |" for name, header in described["components"]["headers"].items()]
    return "\n".join([*lines, ""])


def design_page() -> str:
    """The page that leads from the design documents to the code, with the table of their fields renewed."""
    before, _, rest = (DOCS / "design.md").read_text(encoding="utf-8").partition(FIELDS_BEGIN)
    _, _, after = rest.partition(FIELDS_END)
    rows = ["", "| | entity | here | served by | fields |", "|---|---|---|---|---|", *_entity_rows(), ""]
    return f"{before}{FIELDS_BEGIN}{chr(10).join(rows)}{FIELDS_END}{after}"


def _entity_rows() -> Iterator[str]:
    operations = _operations_by_schema()
    for line in FIELDS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            document, entity, home, *names = line.split()
            kind = _named(home)
            fields = ", ".join(_field(kind, *name.split("=")) for name in names)
            paths = operations.get(kind.__name__, ()) if issubclass(kind, BaseModel) else ()
            served = ", ".join(f"`{path}`" for path in paths) or "Python"
            yield f"| {document} | {entity} | `{home}` | {served} | {fields} |"


def _operations_by_schema() -> dict[str, list[str]]:
    """The endpoints whose request or response is of a class, or holds one."""
    described = unguarded_app().openapi()
    schemas = described["components"]["schemas"]
    found: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            reached: set[str] = set()
            pending = [json.dumps(operation)]
            while pending:
                text = pending.pop()
                for name in schemas:
                    if name not in reached and f'"#/components/schemas/{name}"' in text:
                        reached.add(name)
                        pending.append(json.dumps(schemas[name]))
            for name in reached:
                found.setdefault(name, []).append(f"{method.upper()} {path}")
    return found


def _named(name: str) -> Any:  # noqa: ANN401  # a class, a function or a method
    """What a dotted name leads to."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except ModuleNotFoundError:
        return getattr(_named(module), last)


def _field(kind: Any, name: str, here: str | None = None) -> str:  # noqa: ANN401
    """A field of an entity: its name here if that is another, its type and its limits."""
    label = f"`{name}`" if here is None else f"`{name}` is `{here}`"
    if here and "." in here:
        _named(here)
        return label
    return f"{label}{_limits(kind, here or name)}"


def _limits(kind: Any, name: str) -> str:  # noqa: ANN401
    """The limits and the default of a field of a request; what a response holds needs none."""
    if not hasattr(kind, name) and name not in [*kind.__annotations__, *getattr(kind, "model_fields", ())]:
        raise AttributeError(f"{kind.__name__} has no field {name!r}; correct {FIELDS.name}")
    if kind.__name__ not in REQUESTS:
        return ""
    field = kind.model_json_schema()["properties"][name]
    bounds = {key: value for choice in (field, *field.get("anyOf", ())) for key, value in choice.items()}
    parts = []
    for least, most, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if least in bounds and bounds.get(most, UNBOUNDED) < UNBOUNDED:
            parts.append(f"{bounds[least]} to {bounds[most]}{unit}")
    if field.get("default") is not None:
        parts.append(f"default {json.dumps(field['default'])}")
    return f" ({', '.join(parts)})" if parts else ""


FIELDS = Path(__file__).with_name("design_fields.txt")
FIELDS_BEGIN, FIELDS_END = "<!-- fields: made by `make docs` -->", "<!-- end of fields -->"
UNBOUNDED = 2**31 - 1  # limits of the databases, not of the field
REQUESTS = {"ChatRequest", "SearchQuery", "ToolArguments"}
PAGES = {"cli.md": cli_page, "design.md": design_page, "http.md": http_page, "settings.md": settings_page}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
