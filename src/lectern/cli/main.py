"""`lectern`: one command for each thing a person does. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import gc
import os

import typer

from lectern import __version__
from lectern.cli.ask import ask
from lectern.cli.books import books, chunks, lesson, outline
from lectern.cli.calibrate import calibrate
from lectern.cli.chat import chat
from lectern.cli.doctor import doctor
from lectern.cli.eval import app as evals
from lectern.cli.ingest import ingest
from lectern.cli.insights import insights
from lectern.cli.jobs import app as jobs
from lectern.cli.keys import app as keys
from lectern.cli.search import search
from lectern.cli.serve import serve
from lectern.cli.terminal import echo
from lectern.cli.threads import app as threads

GC_THRESHOLD = 50_000  # a large book makes millions of objects, almost none in reference cycles

app = typer.Typer(
    name="lectern",
    help="Ask a Markdown book questions: cited answers, or an honest refusal.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (ingest, search, ask, chat, lesson, outline, chunks, books, insights, calibrate, doctor, serve):
    app.command(command.__name__)(command)
app.add_typer(jobs, name="jobs")
app.add_typer(threads, name="threads")
app.add_typer(keys, name="keys")
app.add_typer(evals, name="eval")


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Show the version and stop.", is_eager=True),  # noqa: FBT001, FBT003  # typer's way
) -> None:
    """Ask a Markdown book questions: cited answers, or an honest refusal."""
    if show:
        echo(f"lectern {__version__}")
        raise typer.Exit


def run() -> None:
    """The console script."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # where it can start no thread, it sends this process Ctrl-C
    gc.set_threshold(GC_THRESHOLD)
    try:
        app()
    finally:
        gc.freeze()  # the process ends; its objects need no last collection
