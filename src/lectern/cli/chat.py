"""`lectern chat`: a talk with the book. Answers come as they are made, each with its sources; the talk is kept and can
be taken up again."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.app.commands import Chat, ExportThread, ShowThread
from lectern.cli.options import Direct, Json, with_scope
from lectern.cli.remote import Run, channel
from lectern.cli.render import complain, print_json, show_refusal, show_sources
from lectern.domain.errors import BadInput, LecternError
from lectern.domain.scope import Scope
from lectern.domain.threads import checked_id
from lectern.schemas.scope import OPTIONS, fields_of

HELP = """\
/sources          the sources of the last answer
/new              begin a new conversation
/filters          show the filters; /filters tier=2 level=A1,B1 sets, /filters clear removes them
/export [FILE]    the conversation as Markdown, shown or written
/quit             leave (or Ctrl-D)"""
NUMBERS = ("tier", "chapter-min", "chapter-max", "lesson")  # filters whose value is a number


@with_scope
def chat(
    session: Annotated[str | None, typer.Argument(help="A conversation to continue; see `lectern threads`.")] = None,
    *,
    scope: Scope,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Store nothing of this conversation.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Have a conversation with a book, follow-ups included. `/help` lists what else can be typed."""
    try:
        thread_id = checked_id(session) if session else str(uuid.uuid4())
    except BadInput as exc:
        complain(exc)
    talk = _Conversation(thread_id, scope.book_id, fields_of(scope), ephemeral=ephemeral, as_json=json)
    with asyncio.Runner() as runner:
        opened = channel(direct=direct)
        try:
            talk.run = runner.run(opened.__aenter__())
        except LecternError as exc:
            complain(exc)
        try:
            if session:
                runner.run(talk.say_if_new())
            _loop(talk, runner)
        finally:
            runner.run(opened.__aexit__(None, None, None))
    if talk.failed and not sys.stdin.isatty():
        raise typer.Exit(talk.failed)  # a program has to know; a person has seen it


class _Conversation:
    """What is known between two questions."""

    run: Run

    def __init__(
        self, thread_id: str, book: str | None, filters: dict[str, Any], *, ephemeral: bool, as_json: bool
    ) -> None:
        self.thread_id, self.book, self.filters = thread_id, book, filters
        self.ephemeral, self.as_json = ephemeral, as_json
        self.last: dict[str, Any] | None = None
        self.failed = 0  # exit code of the last question or command that went wrong

    async def say_if_new(self) -> None:
        """Whoever mistypes an id must not believe that the talk goes on."""
        try:
            async for _ in self.run(ShowThread(thread_id=self.thread_id)):
                pass
        except LecternError:
            typer.echo(f"lectern: there is no conversation {self.thread_id!r}; a new one begins", err=True)

    async def ask(self, text: str) -> None:
        """One question; the answer is written as it comes."""
        question = Chat(
            thread_id=self.thread_id, text=text, book=self.book, filters=self.filters, ephemeral=self.ephemeral
        )
        async for line in self.run(question):
            if line["kind"] == "delta" and not self.as_json:
                typer.echo(line["text"], nl=False)
            elif line["kind"] == "reply":
                self._show(line["reply"])

    def _show(self, reply: dict[str, Any]) -> None:
        self.last = reply
        if self.as_json:
            print_json(reply)
        elif reply["should_answer"]:
            typer.echo("\n")
            show_sources(reply)
        else:
            typer.echo(reply["response"])
            show_refusal(reply)

    def sources(self, _: str) -> None:
        """`/sources`."""
        if self.last is None or not self.last["sources"]:
            refused = self.last is not None
            typer.echo("The last question was refused, so it has no sources." if refused else "There is no answer yet.")
            return
        for source in self.last["sources"]:
            typer.echo(
                f"[{source['number']}] {source['breadcrumb']}\n    {source['url']}\n    “{source['chunk_text']}”"
            )

    def new(self, _: str) -> None:
        """`/new`."""
        self.thread_id, self.last = str(uuid.uuid4()), None
        typer.echo("A new conversation.")

    def filter(self, text: str) -> None:
        """`/filters`."""
        if text == "clear":
            self.filters = dict.fromkeys(OPTIONS.values(), None)
        for part in text.split() if text != "clear" else ():
            name, _, value = part.partition("=")
            if name not in OPTIONS or not value:
                typer.echo(f"{part!r} is no filter; write one of {', '.join(OPTIONS)} and its value: tier=2")
                return
            try:
                self.filters[OPTIONS[name]] = _filter_value(name, value)
            except ValueError:
                typer.echo(f"{name} is a number, {value!r} is none")
                return
        shown = [f"{name}={self.filters[field]}" for name, field in OPTIONS.items() if self.filters.get(field)]
        typer.echo(", ".join(shown) or "No filters.")

    async def export(self, text: str) -> None:
        """`/export`."""
        export = ExportThread(thread_id=self.thread_id, format="markdown", ephemeral=self.ephemeral)
        async for line in self.run(export):
            if text:
                await asyncio.to_thread(_write, text, line["text"])
                typer.echo(f"Written to {text}")
            else:
                typer.echo(line["text"])


def _filter_value(name: str, text: str) -> int | str | list[str]:
    if name in NUMBERS:
        return int(text)
    return text.split(",") if name == "level" else text


def _write(file: str, text: str) -> None:
    Path(file).expanduser().write_text(text, encoding="utf-8")


def _loop(talk: _Conversation, runner: asyncio.Runner) -> None:
    asking = sys.stdin.isatty() and not talk.as_json
    if asking:
        with contextlib.suppress(ImportError):  # not on Windows: there the console has its own
            import readline  # noqa: F401  # arrow keys at the prompt
        typer.echo("Ask the book. /help lists what else can be typed; Ctrl-D ends.\n")
    commands: dict[str, Callable[[str], Any]] = {
        "/sources": talk.sources,
        "/new": talk.new,
        "/filters": talk.filter,
        "/export": talk.export,
        "/help": lambda _: typer.echo(HELP),
    }
    while True:
        try:
            text = input("› " if asking else "").strip()
        except (EOFError, KeyboardInterrupt):
            typer.echo() if asking else None
            return
        name, _, rest = text.partition(" ")
        if name in ("/quit", "/exit"):
            return
        if name.startswith("/") and name not in commands:
            typer.echo(f"{name} is not known.\n{HELP}")
        elif text:
            _carry(talk, runner, commands.get(name, partial(_ask, talk, text)), rest.strip())


def _ask(talk: _Conversation, text: str, _: str) -> Coroutine[Any, Any, None]:
    return talk.ask(text)


def _carry(talk: _Conversation, runner: asyncio.Runner, step: Callable[[str], Any], rest: str) -> None:
    """One question or command; what goes wrong is said, and the talk goes on."""
    try:
        work = step(rest)
        if asyncio.iscoroutine(work):
            runner.run(work)
    except LecternError as exc:
        talk.failed = exc.exit_code
        typer.echo(f"lectern: {exc}", err=True)
    except OSError as exc:
        typer.echo(f"lectern: {exc.filename or 'the file'} cannot be written ({exc.strerror})", err=True)
    except KeyboardInterrupt:
        typer.echo("\n(broken off)")
