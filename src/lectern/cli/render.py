"""Output: for people on a terminal, or one JSON line for programs. Errors go to stderr, with the exit code of their
class.

How a reply's sources, and a refusal's advice, look on a terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

import typer

from lectern.domain.errors import BadInput, LecternError
from lectern.schemas.scope import OPTIONS

T = TypeVar("T")
INTERRUPTED = 130
OPTION_OF = {  # how a field of a request is written on a command line
    "book_id": "--book",
    **{field: f"--{option}" for option, field in OPTIONS.items()},
    "top_k": "--top-k",
    "limit": "--limit",
    "offset": "--page: the results before it",
    "expand": "--expand",
    "similarity_threshold": "--threshold",
}


def carry(work: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run a command's work; what goes wrong on purpose becomes one line and an exit code."""
    threading.excepthook = _unless_late
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work)
    except LecternError as exc:
        complain(exc)
    except KeyboardInterrupt:
        typer.echo("lectern: interrupted", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # everything is closed or mends itself; a driver's thread must not keep the process


def complain(exc: LecternError) -> NoReturn:
    """Say in the terminal's words what went wrong, and stop."""
    typed = isinstance(exc, BadInput) or getattr(exc, "typed", False)
    fail(_in_options(str(exc)) if typed else str(exc), exc.exit_code)


def _unless_late(failed: threading.ExceptHookArgs) -> None:
    """After Ctrl-C the database's thread may want to report to a loop that is gone: nobody waits for that any more."""
    if str(failed.exc_value) != "Event loop is closed":
        threading.__excepthook__(failed)


def _in_options(message: str) -> str:
    """What an error names by a request's field is an option here."""
    if message.startswith("limit (top_k) must"):  # a question's, not a search's
        message = message.replace("limit (top_k)", "--top-k", 1)
    first = re.sub(r"^(limit|offset|expand)(?: \(top_k\))?(?= must)", lambda field: OPTION_OF[field[1]], message)
    return re.sub(r"\b[a-z]+_[a-z_]+\b", lambda field: OPTION_OF.get(field[0], field[0]), first)


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong and stop."""
    typer.echo(f"lectern: {message}", err=True)
    raise typer.Exit(code)


def print_json(body: object) -> None:
    """One line, the last of stdout."""
    typer.echo(json.dumps(body, ensure_ascii=False))


def confirmed(question: str) -> bool:
    """Whether a person says yes; where nobody is there to ask, no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # nobody is there to answer
        return False


def show_sources(reply: dict[str, Any]) -> None:
    """The numbered sources of an answer, and how sure it is."""
    for source in reply["sources"]:
        typer.echo(f"[{source['number']}] {source['breadcrumb']}")
        published = source["url"].startswith("http")
        where = source["url"] if published else f"{source['source_file']}:{source['line_start']}"
        typer.echo(f"    {where}")
    typer.echo(f"\n{reply['confidence_level']} confidence ({reply['confidence']:.2f}) · {reply['model']}")


def show_refusal(reply: dict[str, Any]) -> None:
    """Where else a refused reader may look."""
    for lesson in reply["outside_scope"]:
        typer.echo(f"\nOutside your filters the book covers it: {lesson['title']}  {lesson['url']}")
    if reply["other_books"]:
        typer.echo(f"\nAnother book covers it: {', '.join(reply['other_books'])}")
    if reply["nearest"] and not reply["outside_scope"]:
        typer.echo("\nNearest lessons:")
        for lesson in reply["nearest"]:
            typer.echo(f"  {lesson['title']}  {lesson['url']}")
