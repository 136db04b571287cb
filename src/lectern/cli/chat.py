"""`lectern chat`: a conversation with a book. Answers are printed as they are written, each with its sources. The
conversation is stored and can be continued later."""

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
from lectern.cli.remote import Run, open_runner
from lectern.cli.render import exit_with, print_json, show_doubtful, show_refusal, show_sources
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
WITHDRAWN = "That draft is withdrawn: its claims do not rest on the book."
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
        exit_with(exc)
    conversation = _Conversation(thread_id, scope.book_id, fields_of(scope), ephemeral=ephemeral, as_json=json)
    with asyncio.Runner() as runner:
        opened = open_runner(direct=direct)
        try:
            conversation.run = runner.run(opened.__aenter__())
        except LecternError as exc:
            exit_with(exc)
        try:
            if session:
                runner.run(conversation.say_if_new())
            _loop(conversation, runner)
        finally:
            runner.run(opened.__aexit__(None, None, None))
    if conversation.failed and not sys.stdin.isatty():
        raise typer.Exit(conversation.failed)  # a program needs the exit code; a person has read the error


class _Conversation:
    """The state of the conversation between two questions."""

    run: Run

    def __init__(
        self, thread_id: str, book: str | None, filters: dict[str, Any], *, ephemeral: bool, as_json: bool
    ) -> None:
        self.thread_id, self.book, self.filters = thread_id, book, filters
        self.ephemeral, self.as_json = ephemeral, as_json
        self.last: dict[str, Any] | None = None
        self._begun = False  # text of the answer has been printed
        self._flagged: set[int] = set()  # claims of this answer that were printed as doubtful
        self.failed = 0  # exit code of the last question or command that failed

    async def say_if_new(self) -> None:
        """Say that a new conversation begins if there is none with this id; it may be mistyped."""
        try:
            async for _ in self.run(ShowThread(thread_id=self.thread_id)):
                pass
        except LecternError:
            typer.echo(f"lectern: there is no conversation {self.thread_id!r}; a new one begins", err=True)

    async def ask(self, text: str) -> None:
        """Ask one question, and print the answer as it arrives."""
        self._begun = False
        self._flagged.clear()
        question = Chat(
            thread_id=self.thread_id, text=text, book=self.book, filters=self.filters, ephemeral=self.ephemeral
        )
        async for line in self.run(question):
            if line["kind"] == "delta" and not self.as_json:
                typer.echo(line["text"], nl=False)
                self._begun = True
            elif line["kind"] == "verdict":
                self._note(line["claim"], line["statement"])
            elif line["kind"] == "reply":
                self._show(line["reply"])

    def _note(self, claim: int, statement: dict[str, Any]) -> None:
        """Print a claim that turns out to be doubtful, below the answer."""
        if statement["verdict"] == "doubtful" and not self.as_json and claim not in self._flagged:
            if not self._flagged:
                typer.echo("\n")
            self._flagged.add(claim)
            show_doubtful(statement)

    def _show(self, reply: dict[str, Any]) -> None:
        self.last = reply
        begun, self._begun = self._begun, False
        self._flagged.clear()
        if self.as_json:
            print_json(reply)
            return
        if begun:
            typer.echo("\n")
        elif reply["should_answer"]:  # nothing is sent before the reply if doubtful claims are hidden
            typer.echo(f"{reply['response']}\n")
        if reply["should_answer"]:
            show_sources(reply)
        else:
            typer.echo(f"{WITHDRAWN}\n{reply['response']}" if begun else reply["response"])
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
        filter_texts = [f"{name}={self.filters[field]}" for name, field in OPTIONS.items() if self.filters.get(field)]
        typer.echo(", ".join(filter_texts) or "No filters.")

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


def _loop(conversation: _Conversation, runner: asyncio.Runner) -> None:
    interactive = sys.stdin.isatty() and not conversation.as_json
    if interactive:
        with contextlib.suppress(ImportError):  # not on Windows, whose console has its own
            import readline  # noqa: F401  # arrow keys at the prompt
        typer.echo("Ask the book. /help lists what else can be typed; Ctrl-D ends.\n")
    commands: dict[str, Callable[[str], Any]] = {
        "/sources": conversation.sources,
        "/new": conversation.new,
        "/filters": conversation.filter,
        "/export": conversation.export,
        "/help": lambda _: typer.echo(HELP),
    }
    while True:
        try:
            text = input("› " if interactive else "").strip()
        except (EOFError, KeyboardInterrupt):
            typer.echo() if interactive else None
            return
        name, _, rest = text.partition(" ")
        if name in ("/quit", "/exit"):
            return
        if name.startswith("/") and name not in commands:
            typer.echo(f"{name} is not known.\n{HELP}")
        elif text:
            _run_step(conversation, runner, commands.get(name, partial(_ask, conversation, text)), rest.strip())


def _ask(conversation: _Conversation, text: str, _: str) -> Coroutine[Any, Any, None]:
    return conversation.ask(text)


def _run_step(conversation: _Conversation, runner: asyncio.Runner, step: Callable[[str], Any], rest: str) -> None:
    """Run one question or command; an error is printed, and the conversation goes on."""
    try:
        work = step(rest)
        if asyncio.iscoroutine(work):
            runner.run(work)
    except LecternError as exc:
        conversation.failed = exc.exit_code
        typer.echo(f"lectern: {exc}", err=True)
    except OSError as exc:
        typer.echo(f"lectern: {exc.filename or 'the file'} cannot be written ({exc.strerror})", err=True)
    except KeyboardInterrupt:
        typer.echo("\n(broken off)")
