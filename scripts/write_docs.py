"""Writes the pages that are made from the code: docs/cli.md, docs/settings.md and docs/http.md.

`make docs` runs it; a test holds the pages against what it would write, so a command, setting or endpoint that is not
documented fails the suite.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer.main

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


PAGES = {"cli.md": cli_page, "settings.md": settings_page, "http.md": http_page}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
