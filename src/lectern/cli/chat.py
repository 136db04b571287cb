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
from lectern.cli.render import exit_with, show_doubtful, show_refusal, show_sources
from lectern.cli.terminal import echo, print_json
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
CHANGED = "That was a draft. Checked, the answer is:\n"
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
        raise typer.Exit(conversation.failed)  # of the last question: a program asked it and needs the exit code


class _Conversation:
    """The state of the conversation between two questions."""

    run: Run

    def __init__(
        self, thread_id: str, book: str | None, filters: dict[str, Any], *, ephemeral: bool, as_json: bool
    ) -> None:
        self.thread_id, self.book, self.filters = thread_id, book, filters
        self.ephemeral, self.as_json = ephemeral, as_json
        self.last: dict[str, Any] | None = None
        self._printed = ""  # text of the current answer, as it came
        self._flagged: set[int] = set()  # claims of this answer that were printed as doubtful
        self.failed = 0  # exit code of the last question or command

    async def say_if_new(self) -> None:
        """Say that a new conversation begins if there is none with this id; it may be mistyped."""
        try:
            async for _ in self.run(ShowThread(thread_id=self.thread_id)):
                pass
        except LecternError:
            echo(f"lectern: there is no conversation {self.thread_id!r}; a new one begins", err=True)

    async def ask(self, text: str) -> None:
        """Ask one question, and print the answer as it arrives."""
        self._printed = ""
        self._flagged.clear()
        question = Chat(
            thread_id=self.thread_id, text=text, book=self.book, filters=self.filters, ephemeral=self.ephemeral
        )
        async for line in self.run(question):
            if line["kind"] == "delta" and not self.as_json:
                echo(line["text"], nl=False)
                self._printed += line["text"]
            elif line["kind"] == "verdict":
                self._note(line["claim"], line["statement"])
            elif line["kind"] == "reply":
                self._show(line["reply"])
                self._printed = ""

    def break_line(self) -> None:
        """End the line of an answer that broke off, so that what follows has its own."""
        if self._printed:
            echo()
        self._printed = ""

    def _note(self, claim: int, statement: dict[str, Any]) -> None:
        """Print a claim that turns out to be doubtful, below the answer."""
        if statement["verdict"] == "doubtful" and not self.as_json and claim not in self._flagged:
            if not self._flagged:
                echo("\n")
            self._flagged.add(claim)
            show_doubtful(statement)

    def _show(self, reply: dict[str, Any]) -> None:
        self.last = reply
        draft = self._printed.strip()
        if self.as_json:
            print_json(reply)
            return
        if draft:
            echo("\n")
        if reply["should_answer"]:
            self._show_checked(draft, reply["response"])
            show_sources(reply)
        else:
            echo(reply["response"])
            show_refusal(reply, is_shown=bool(draft))

    def _show_checked(self, draft: str, response: str) -> None:
        """Print the answer if it is not on the screen as it is now. If markers were corrected, the sources below have
        the numbers of the reply; if verdicts lowered its level, it opens with the disclaimer."""
        if response != draft:  # nothing is sent before the reply if doubtful claims are hidden
            echo(f"{CHANGED if draft else ''}{response}\n")

    def sources(self, _: str) -> None:
        """`/sources`."""
        if self.last is None or not self.last["sources"]:
            refused = self.last is not None
            echo("The last question was refused, so it has no sources." if refused else "There is no answer yet.")
            return
        for source in self.last["sources"]:
            echo(f"[{source['number']}] {source['breadcrumb']}\n    {source['url']}\n    “{source['chunk_text']}”")

    def new(self, _: str) -> None:
        """`/new`."""
        self.thread_id, self.last = str(uuid.uuid4()), None
        echo("A new conversation.")

    def filter(self, text: str) -> None:
        """`/filters`."""
        if text == "clear":
            self.filters = dict.fromkeys(OPTIONS.values(), None)
        for part in text.split() if text != "clear" else ():
            name, _, value = part.partition("=")
            if name not in OPTIONS or not value:
                echo(f"{part!r} is no filter; write one of {', '.join(OPTIONS)} and its value: tier=2")
                return
            try:
                self.filters[OPTIONS[name]] = _filter_value(name, value)
            except ValueError:
                echo(f"{name} is a number, {value!r} is none")
                return
        filter_texts = [f"{name}={self.filters[field]}" for name, field in OPTIONS.items() if self.filters.get(field)]
        echo(", ".join(filter_texts) or "No filters.")

    async def export(self, text: str) -> None:
        """`/export`."""
        export = ExportThread(thread_id=self.thread_id, format="markdown", ephemeral=self.ephemeral)
        async for line in self.run(export):
            if text:
                await asyncio.to_thread(_write, text, line["text"])
                echo(f"Written to {text}")
            else:
                echo(line["text"])


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
        echo("Ask the book. /help lists what else can be typed; Ctrl-D ends.\n")
    commands: dict[str, Callable[[str], Any]] = {
        "/sources": conversation.sources,
        "/new": conversation.new,
        "/filters": conversation.filter,
        "/export": conversation.export,
        "/help": lambda _: echo(HELP),
    }
    while True:
        try:
            text = input("› " if interactive else "").strip()
        except (EOFError, KeyboardInterrupt):
            echo() if interactive else None
            return
        name, _, rest = text.partition(" ")
        if name in ("/quit", "/exit"):
            conversation.failed = 0  # the reader has seen every error, and leaves
            return
        if name.startswith("/") and name not in commands:
            echo(f"{name} is not known.\n{HELP}")
        elif text:
            _run_step(conversation, runner, commands.get(name, partial(_ask, conversation, text)), rest.strip())


def _ask(conversation: _Conversation, text: str, _: str) -> Coroutine[Any, Any, None]:
    return conversation.ask(text)


def _run_step(conversation: _Conversation, runner: asyncio.Runner, step: Callable[[str], Any], rest: str) -> None:
    """Run one question or command; an error is printed, and the conversation goes on."""
    conversation.failed = 0
    try:
        work = step(rest)
        if asyncio.iscoroutine(work):
            runner.run(work)
    except LecternError as exc:
        conversation.failed = exc.exit_code
        conversation.break_line()
        echo(f"lectern: {exc}", err=True)
    except OSError as exc:
        echo(f"lectern: {exc.filename or 'the file'} cannot be written ({exc.strerror})", err=True)
    except KeyboardInterrupt:
        echo("\n(broken off)")
