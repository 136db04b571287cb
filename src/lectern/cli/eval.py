"""`lectern eval`: measures search, chunking, refusals, verdicts and answers on question sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lectern.cli.eval_answers import answers
from lectern.cli.eval_grounding import grounding
from lectern.cli.eval_model_answers import model_answers
from lectern.cli.eval_refusal import refusal
from lectern.cli.options import Json
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo, print_json

if TYPE_CHECKING:
    from lectern.app.settings import Settings
    from lectern.evals.runs import Kind, Run

app = typer.Typer(
    help="Measure retrieval, chunking, refusals, verdicts and answers on question sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("refusal")(refusal)
app.command("grounding")(grounding)
app.command("model-answers")(model_answers)
app.command("answers")(answers)

Sets = Annotated[list[Path], typer.Argument(help="Folders of question sets: queries.jsonl with a corpus or a book.")]
Set = Annotated[Path, typer.Argument(help="A question set whose gold has character spans, with corpus.jsonl.")]
BookFolder = Annotated[
    Path | None, typer.Option("--book", help="The folder that gold documents lie in, if not beside the set.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Index again; use nothing from an earlier run.")]
FailUnder = Annotated[
    str | None,
    typer.Option(
        "--fail-under",
        help="The lowest figures that hybrid may have in any set, as recall@5=0.8,mrr@10=0.6; below: exit 2.",
    ),
]
Reranked = Annotated[bool, typer.Option("--reranked", help="Also measure the mode reranked, which takes much longer.")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Write a bar chart (SVG) to this file.")]


@app.command("retrieval")
def retrieval(  # noqa: PLR0913  # one parameter an option
    path: Sets,
    book: BookFolder = None,
    fail_under: FailUnder = None,
    picture: Picture = None,
    *,
    reranked: Reranked = False,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Search for the answers of one or several question sets, in every mode: recall, MRR and nDCG with intervals."""
    if book is not None and len(path) > 1:
        fail("--book is about one question set; evaluate the sets one by one", 2)
    run, short = run_async(
        _run("retrieval", path, book=book, fresh=fresh, fail_under=fail_under, quiet=json, reranked=reranked)
    )
    _show(run, short, picture, "recall@5", json=json)


@app.command("chunking")
def chunking(
    path: Set, fail_under: FailUnder = None, picture: Picture = None, *, fresh: Fresh = False, json: Json = False
) -> None:
    """Score how a corpus is cut: recall, precision and IoU of the tokens that answer, and finding by last sentence."""
    run, short = run_async(_run("chunking", [path], book=None, fresh=fresh, fail_under=fail_under, quiet=json))
    _show(run, short, picture, "token_recall", json=json)


@app.command("compare")
def compare(
    before: Annotated[str, typer.Argument(metavar="RUN", help="A run's number, or its file.")],
    after: Annotated[str, typer.Argument(metavar="RUN", help="The run to compare with it.")],
    *,
    json: Json = False,
) -> None:
    """Show what changed between two runs, over the questions that both asked; a star marks what is hardly chance."""
    compared = run_async(_compare(before, after))
    if json:
        print_json(compared)
    else:
        from lectern.evals.report import comparison_text

        echo(comparison_text(compared))


async def _run(  # noqa: PLR0913  # what the options say
    kind: Kind,
    paths: list[Path],
    *,
    book: Path | None,
    fresh: bool,
    fail_under: str | None,
    quiet: bool,
    reranked: bool = False,
) -> tuple[Run, list[str]]:
    """The stored run, and the gates that it misses. The options are checked before the work begins."""
    from lectern.evals.datasets import load_set
    from lectern.evals.report import parse_gates, shortfalls
    from lectern.evals.runner import MODES, EvalContext, evaluate
    from lectern.evals.runs import store

    gates = parse_gates(fail_under, kind) if fail_under is not None else {}
    sets = [load_set(path, book) for path in paths]
    settings, folder = _settings_and_folder(create=True)
    with _progress(quiet=quiet) as advance:
        modes = (*MODES, "reranked") if reranked else MODES
        context = EvalContext(settings=settings, cache=folder / "cache", fresh=fresh, advance=advance, modes=modes)
        run = store(await evaluate(kind, sets, context), folder / "runs")
    return run, shortfalls(run, gates)


async def _compare(before: str, after: str) -> dict[str, Any]:
    from lectern.evals.runs import compare, load

    _, folder = _settings_and_folder(create=False)
    return compare(load(before, folder / "runs"), load(after, folder / "runs"))


def _settings_and_folder(*, create: bool) -> tuple[Settings, Path]:
    """The settings, and the folder where evaluations store their files."""
    from lectern.app.home import find_home
    from lectern.app.settings import load_settings

    settings = load_settings()
    return settings, find_home(settings.home, create=create).path / "evals"


def _show(run: Run, short: list[str], picture: Path | None, metric: str, *, json: bool) -> None:
    from lectern.evals.report import run_text
    from lectern.evals.retrieval_picture import draw_chart
    from lectern.evals.runs import summary

    if picture is not None:
        try:
            picture.write_text(draw_chart(run, metric), encoding="utf-8")
        except OSError as exc:
            fail(f"{picture} cannot be written ({exc.strerror}); run {run.number} is stored", 2)
    if json:
        print_json(summary(run))
    else:
        echo(run_text(run))
    for line in short:
        echo(f"lectern: {line}", err=True)
    if short:
        raise typer.Exit(2)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    if quiet:
        yield lambda _step, _count, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Reading questions", total=None)
        yield lambda step, count, total: progress.update(task, description=step, completed=count, total=total)
