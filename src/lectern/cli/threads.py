"""`lectern threads`: the conversations of this terminal and, while there is no key, of the page."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lectern.app.commands import DeleteThread, ExportThread, ListThreads, PurgeThreads, ShowThread
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run_all, run_one
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import confirm, echo, echo_json, print_json

app = typer.Typer(help="List, read, export and delete conversations.", no_args_is_help=True, rich_markup_mode=None)
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The conversation's id.")]


class Format(StrEnum):
    """The format of an export."""

    JSON = "json"
    MARKDOWN = "markdown"


@app.command("list")
def list_threads(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    query: Annotated[str, typer.Option("--query", help="Words in the title or in a question.")] = "",
    book: Annotated[str | None, typer.Option("--book", help="About this book only.")] = None,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """List conversations, the most recently used first."""
    heads = run_async(run_all(ListThreads(limit=limit, query=query, book=book), direct=direct))
    if json:
        print_json(heads)
        return
    if not heads:
        narrowed = bool(query or book)
        echo("No such conversation." if narrowed else "No conversation yet; begin one with: lectern chat")
    for head in heads:
        turns = f"{head['turn_count']} turn{'s' if head['turn_count'] != 1 else ''}"
        echo(f"{head['thread_id']}  {head['updated_at']}  {head['book_id']}  {turns}  {head['title']}")


@app.command("show")
def show(thread_id: ThreadId, *, direct: Direct = False, json: Json = False) -> None:
    """Read a conversation."""
    thread = run_async(run_one(ShowThread(thread_id=thread_id), direct=direct))
    if json:
        print_json(thread)
        return
    echo(f"{thread['title']}  ({thread['book_id']}, {thread['turn_count']} turns)\n")
    for message in thread["messages"]:
        echo(f"› {message['content']}" if message["role"] == "user" else f"{message['content']}\n")


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

    thread = run_async(run_one(ExportThread(thread_id=thread_id, format=form.value), direct=direct))
    text = thread["text"] if form is Format.MARKDOWN else json.dumps(thread, ensure_ascii=False, indent=2)
    if output is None:
        echo(text) if form is Format.MARKDOWN else echo_json(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as exc:
        fail(f"{output} cannot be written ({exc.strerror})", 2)
    echo(f"Written to {output}")


@app.command("delete")
def delete(thread_id: ThreadId, *, direct: Direct = False, json: Json = False) -> None:
    """Delete a conversation and everything that belongs to it."""
    deletion = run_async(run_one(DeleteThread(thread_id=thread_id), direct=direct))
    print_json(deletion) if json else echo(f"Deleted {thread_id}")


@app.command("purge")
def purge(
    days: Annotated[int, typer.Option("--older-than", min=0, help="Days since they were last used.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Delete every owner's conversations that were not used for some days. This cannot be undone."""
    if not yes and not confirm(f"Delete every conversation that was not used for {days} days?"):
        fail("nothing was deleted; --yes deletes without asking", 2)
    purge_result = run_async(run_one(PurgeThreads(days=days), direct=direct))
    print_json(purge_result) if json else echo(f"Deleted {purge_result['threads_deleted']} conversations")
