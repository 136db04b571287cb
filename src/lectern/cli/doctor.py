"""`lectern doctor`: finds and repairs differences between index and ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from lectern.app.commands import Doctor
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all
from lectern.cli.render import print_json, run_async


def doctor(
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what is found, and delete unused vectors.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Compare index and ledger, chunk by chunk; exit 2 if something is wrong and was not repaired."""
    findings = run_async(run_all(Doctor(mend=mend), direct=direct))
    if json:
        print_json(findings)
    else:
        for finding in findings:
            where = f"{finding['book_id']}: " if finding["book_id"] else ""
            typer.echo(f"{where}{finding['kind']}: {finding['detail']}{'  (mended)' if finding['mended'] else ''}")
        if not findings:
            typer.echo("Index and ledger agree.")
    unmended = [finding for finding in findings if not finding["mended"]]
    if unmended and not mend and not json:
        typer.echo("Run: lectern doctor --mend", err=True)
    if unmended:
        raise typer.Exit(2)
