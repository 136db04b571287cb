"""`lectern threads`: the conversations that were held from this terminal and, while no key exists, from the page."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lectern.app.commands import DeleteThread, ExportThread, ListThreads, PurgeThreads, ShowThread
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all, run_one
from lectern.cli.render import carry, confirmed, fail, print_json

app = typer.Typer(help="List, read, export and delete conversations.", no_args_is_help=True, rich_markup_mode=None)
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The conversation's id.")]


class Format(StrEnum):
    """Of an export."""

    JSON = "json"
    MARKDOWN = "markdown"


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """List conversations, the most recently used first."""
    found = carry(run_all(ListThreads(limit=limit), direct=direct))
    if json:
        print_json(found)
        return
    if not found:
        typer.echo("No conversation yet; begin one with: lectern chat")
    for head in found:
        turns = f"{head['turn_count']} turn{'s' if head['turn_count'] != 1 else ''}"
        typer.echo(f"{head['thread_id']}  {head['updated_at']}  {head['book_id']}  {turns}  {head['title']}")


@app.command("show")
def show(thread_id: ThreadId, *, direct: Direct = False, json: Json = False) -> None:
    """Read a conversation."""
    found = carry(run_one(ShowThread(thread_id=thread_id), direct=direct))
    if json:
        print_json(found)
        return
    typer.echo(f"{found['title']}  ({found['book_id']}, {found['turn_count']} turns)\n")
    for message in found["messages"]:
        typer.echo(f"› {message['content']}" if message["role"] == "user" else f"{message['content']}\n")


@app.command("export")
def export(
    thread_id: ThreadId,
    form: Annotated[Format, typer.Option("--format", help="json or markdown.")] = Format.MARKDOWN,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; default: the terminal.")] = None,
    *,
    direct: Direct = False,
) -> None:
    """Write a whole conversation, with every reply and its sources."""
    import json

    found = carry(run_one(ExportThread(thread_id=thread_id, format=form.value), direct=direct))
    text = found["text"] if form is Format.MARKDOWN else json.dumps(found, ensure_ascii=False, indent=2)
    if output is None:
        typer.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as exc:
        fail(f"{output} cannot be written ({exc.strerror})", 2)
    typer.echo(f"Written to {output}")


@app.command("delete")
def delete(thread_id: ThreadId, *, direct: Direct = False, json: Json = False) -> None:
    """Delete a conversation and everything that belongs to it."""
    gone = carry(run_one(DeleteThread(thread_id=thread_id), direct=direct))
    print_json(gone) if json else typer.echo(f"Deleted {thread_id}")


@app.command("purge")
def purge(
    days: Annotated[int, typer.Option("--older-than", min=0, help="Days since they were last used.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Delete every owner's conversations that were not used for some days. This cannot be undone."""
    if not yes and not confirmed(f"Delete every conversation that was not used for {days} days?"):
        fail("nothing was deleted; --yes deletes without asking", 2)
    gone = carry(run_one(PurgeThreads(days=days), direct=direct))
    print_json(gone) if json else typer.echo(f"Deleted {gone['threads_deleted']} conversations")
