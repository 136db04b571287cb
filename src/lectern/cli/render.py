"""Runs a command's work and prints its output: text for a terminal, or one JSON line for programs. Errors go to stderr,
and their class determines the exit code.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from decimal import ROUND_DOWN, Decimal
from textwrap import shorten
from typing import Any, NoReturn, TypeVar

import typer

from lectern.cli.terminal import echo
from lectern.domain.errors import BadInput, LecternError, OutOfResources
from lectern.domain.resources import shortage_of
from lectern.schemas.scope import OPTIONS
from lectern.text.strings import DEFAULT_LANGUAGE, strings_of

T = TypeVar("T")
EXIT_INTERRUPTED = 130
ENGLISH = strings_of(DEFAULT_LANGUAGE)
WITHDRAWN = "That draft is withdrawn: its claims do not rest on the book."
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


def run_async(
    work: Coroutine[Any, Any, T],
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    remarks: Sequence[str] = (),
) -> T:
    """Run a command's work; an error of Lectern becomes one line and an exit code. After Ctrl-C, the remarks that the
    work has left say what became of it."""
    threading.excepthook = _ignore_closed_loop
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work)
    except LecternError as exc:
        exit_with(exc)
    except Exception as exc:
        if (shortage := shortage_of(exc)) is not None:
            exit_with(OutOfResources(shortage))
        raise
    except KeyboardInterrupt:
        echo("; ".join(("lectern: interrupted", *remarks)), err=True)
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
    echo(f"lectern: {message}", err=True)
    raise typer.Exit(code)


def _shown_confidence(confidence: float) -> Decimal:
    """A confidence with two places, rounded down: rounded up, it would show the edge of the next level."""
    return Decimal(str(confidence)).quantize(Decimal("0.01"), rounding=ROUND_DOWN)


def _lacks(reply: dict[str, Any]) -> list[str]:
    """What is not there of an answer: it ended early, or something was hidden or removed."""
    hidden, links = reply["removed"]["hidden"], reply["removed"]["links"]
    cut = f"The model stopped early ({reply['cut']}): the answer is not complete." if reply.get("cut") else ""
    remarks = (
        cut,
        ENGLISH("turn.hidden", count=hidden) if hidden else "",
        ENGLISH("turn.links", count=links) if links else "",
    )
    return [remark for remark in remarks if remark]


def show_sources(reply: dict[str, Any]) -> None:
    """Print the numbered sources of an answer, and its confidence."""
    for source in reply["sources"]:
        echo(f"[{source['number']}] {source['breadcrumb']}")
        published = source["url"].startswith("http")
        where = source["url"] if published else f"{source['source_file']}:{source['line_start']}"
        echo(f"    {where}")
    for remark in _lacks(reply):
        echo(f"\n{remark}")
    confirmed = sum(statement["verdict"] == "supported" for statement in reply["statements"])
    claims = f" · ✓ {confirmed} of {len(reply['statements'])} claims" if reply["statements"] else ""
    level = f"{reply['confidence_level']} confidence ({_shown_confidence(reply['confidence'])})"
    echo(f"\n{level}{claims} · {reply['model']}")


def show_doubtful(statement: dict[str, Any]) -> None:
    """Print a doubtful claim with what the book says."""
    claim = shorten(" ".join(statement["text"].split()), MAX_CLAIM_WIDTH, placeholder=" …")
    echo(f"⚑ “{claim}” {statement['reason']}")
    if statement["evidence"]:
        echo(f"  The book: “{shorten(statement['evidence'], MAX_CLAIM_WIDTH, placeholder=' …')}”")


def show_refusal(reply: dict[str, Any], *, is_shown: bool = False) -> None:
    """Print where else the reader may look, and before it that a draft was withdrawn, which may be on the screen."""
    if reply.get("withdrawn"):
        echo(WITHDRAWN if is_shown else ENGLISH("refusal.withdrawn"))
    for lesson in reply["outside_scope"]:
        echo(f"\nOutside your filters the book covers it: {lesson['title']}  {lesson['url']}")
    if reply["other_books"]:
        echo(f"\nAnother book covers it: {', '.join(reply['other_books'])}")
    if reply["nearest"] and not reply["outside_scope"]:
        echo("\nNearest lessons:")
        for lesson in reply["nearest"]:
            echo(f"  {lesson['title']}  {lesson['url']}")
