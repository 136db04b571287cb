"""`lectern doctor`: finds and repairs differences between index and ledger, and tries the language model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lectern.app.commands import Doctor
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all, running_server
from lectern.cli.render import run_async
from lectern.cli.terminal import echo, print_json


def doctor(
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what is found, and delete unused vectors.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Compare index and ledger, chunk by chunk, and try the language model if there is one; exit 2 if something is
    wrong and was not repaired."""
    findings = run_async(run_all(Doctor(mend=mend), direct=direct))
    of_index = [finding for finding in findings if not finding["kind"].startswith("model ")]
    if json:
        print_json(findings)
    else:
        if not direct and (server := running_server()) is not None:
            echo(f"Asked {server.description}, which answers with {server.model}.")
        for finding in findings:
            echo(_line(finding))
        if not of_index:
            echo("Index and ledger agree.")
    if not mend and not json and any(not finding["mended"] for finding in of_index):
        echo("Run: lectern doctor --mend", err=True)
    if any(finding["severity"] == "problem" and not finding["mended"] for finding in findings):
        raise typer.Exit(2)


def _line(finding: dict[str, Any]) -> str:
    where = f"{finding['book_id']}: " if finding["book_id"] else ""
    note = "note: " if finding["severity"] == "note" else ""
    return f"{where}{finding['kind']}: {note}{finding['detail']}{'  (mended)' if finding['mended'] else ''}"
