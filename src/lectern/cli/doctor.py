"""`lectern doctor`: finds, and mends, what index and ledger disagree about."""

from __future__ import annotations

from typing import Annotated

import typer

from lectern.app.commands import Doctor
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all
from lectern.cli.render import carry, print_json


def doctor(
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what is found, and delete unused vectors.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Compare index and ledger, chunk by chunk; exit 2 if something is wrong and was not repaired."""
    findings = carry(run_all(Doctor(mend=mend), direct=direct))
    if json:
        print_json(findings)
    else:
        for finding in findings:
            where = f"{finding['book_id']}: " if finding["book_id"] else ""
            typer.echo(f"{where}{finding['kind']}: {finding['detail']}{'  (mended)' if finding['mended'] else ''}")
        if not findings:
            typer.echo("Index and ledger agree.")
    left = [finding for finding in findings if not finding["mended"]]
    if left and not mend and not json:
        typer.echo("Run: lectern doctor --mend", err=True)
    if left:
        raise typer.Exit(2)
