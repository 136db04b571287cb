"""Runs a command's work and prints its output: text for a terminal, or one JSON line for programs. Errors go to stderr,
and their class determines the exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine
from textwrap import shorten
from typing import Any, NoReturn, TypeVar

import typer

from lectern.domain.errors import BadInput, LecternError
from lectern.schemas.scope import OPTIONS

T = TypeVar("T")
EXIT_INTERRUPTED = 130
MAX_CLAIM_WIDTH = 160  # characters of a claim or of the book's words
OPTION_OF_FIELD = {  # how a field of a request is written on a command line
    "book_id": "--book",
    **{field: f"--{option}" for option, field in OPTIONS.items()},
    "top_k": "--top-k",
    "limit": "--limit",
    "offset": "--page: the results before it",
    "expand": "--expand",
    "similarity_threshold": "--threshold",
}


def run_async(work: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run a command's work; an error of Lectern becomes one line and an exit code."""
    threading.excepthook = _ignore_closed_loop
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work)
    except LecternError as exc:
        exit_with(exc)
    except KeyboardInterrupt:
        typer.echo("lectern: interrupted", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)  # everything is closed or repairs itself; no thread may keep the process alive


def exit_with(exc: LecternError) -> NoReturn:
    """Print an error, with options instead of field names, and exit."""
    typed = isinstance(exc, BadInput) or getattr(exc, "typed", False)
    fail(_in_options(str(exc)) if typed else str(exc), exc.exit_code)


def _ignore_closed_loop(failed: threading.ExceptHookArgs) -> None:
    """Ignore errors of the database's thread after Ctrl-C, when the event loop is closed already."""
    if str(failed.exc_value) != "Event loop is closed":
        threading.__excepthook__(failed)


def _in_options(message: str) -> str:
    """An error message with options instead of the field names of a request."""
    if message.startswith("limit (top_k) must"):  # a question's, not a search's
        message = message.replace("limit (top_k)", "--top-k", 1)
    first = re.sub(r"^(limit|offset|expand)(?: \(top_k\))?(?= must)", lambda field: OPTION_OF_FIELD[field[1]], message)
    return re.sub(r"\b[a-z]+_[a-z_]+\b", lambda field: OPTION_OF_FIELD.get(field[0], field[0]), first)


def fail(message: str, code: int) -> NoReturn:
    """Print an error and exit."""
    typer.echo(f"lectern: {message}", err=True)
    raise typer.Exit(code)


def print_json(body: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(body, ensure_ascii=False))


def confirm(question: str) -> bool:
    """Ask a yes-or-no question; no if nobody can answer."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # no terminal, or Ctrl-C
        return False


def show_sources(reply: dict[str, Any]) -> None:
    """Print the numbered sources of an answer, and its confidence."""
    for source in reply["sources"]:
        typer.echo(f"[{source['number']}] {source['breadcrumb']}")
        published = source["url"].startswith("http")
        where = source["url"] if published else f"{source['source_file']}:{source['line_start']}"
        typer.echo(f"    {where}")
    if reply.get("cut"):
        typer.echo(f"\nThe model stopped early ({reply['cut']}): the answer is not complete.")
    confirmed = sum(statement["verdict"] == "supported" for statement in reply["statements"])
    claims = f" · ✓ {confirmed} of {len(reply['statements'])} claims" if reply["statements"] else ""
    typer.echo(f"\n{reply['confidence_level']} confidence ({reply['confidence']:.2f}){claims} · {reply['model']}")


def show_doubtful(statement: dict[str, Any]) -> None:
    """Print a doubtful claim with what the book says."""
    claim = shorten(" ".join(statement["text"].split()), MAX_CLAIM_WIDTH, placeholder=" …")
    typer.echo(f"⚑ “{claim}” {statement['reason']}")
    if statement["evidence"]:
        typer.echo(f"  The book: “{shorten(statement['evidence'], MAX_CLAIM_WIDTH, placeholder=' …')}”")


def show_refusal(reply: dict[str, Any]) -> None:
    """Print where else the reader of a refusal may look."""
    for lesson in reply["outside_scope"]:
        typer.echo(f"\nOutside your filters the book covers it: {lesson['title']}  {lesson['url']}")
    if reply["other_books"]:
        typer.echo(f"\nAnother book covers it: {', '.join(reply['other_books'])}")
    if reply["nearest"] and not reply["outside_scope"]:
        typer.echo("\nNearest lessons:")
        for lesson in reply["nearest"]:
            typer.echo(f"  {lesson['title']}  {lesson['url']}")
