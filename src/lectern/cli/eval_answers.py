"""`lectern eval answers`: measures whether replies contain the known answers, word for word from the book."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.cli.options import Json
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo, print_json

HALVES = ("fitted", "other")

Set = Annotated[Path, typer.Argument(help="A question set whose questions have `answers`.")]
BookFolder = Annotated[
    Path | None, typer.Option("--book", help="The book's folder, if it is not `docs` or corpus.jsonl in the set.")
]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="Ask only this many questions, chosen at random.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random choice.")]
HalfName = Annotated[
    str | None,
    typer.Option("--half", help="fitted or other: every second article, as scripts/fit_offline.py cuts them."),
]
Gate = Annotated[
    bool,
    typer.Option(
        "--gate/--no-gate", help="Refuse as for readers; without the gate the offline model answers everything."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Index again; use nothing from an earlier run.")]


def answers(  # noqa: PLR0913  # one parameter an option
    path: Set,
    book: BookFolder = None,
    sample: Sample = None,
    seed: Seed = 2,
    half: HalfName = None,
    *,
    gate: Gate = True,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Ask every answerable question of a set: how often a known answer is in the reply, and whether that is quoted."""
    if half is not None and half not in HALVES:
        fail(f"--half must be one of {', '.join(HALVES)}, not {half!r}", 2)
    figures = run_async(_run(path, book, sample, seed, half, gate=gate, fresh=fresh, quiet=json))
    if json:
        print_json(figures)
    else:
        from lectern.evals.answers import answers_text

        echo(answers_text(figures))


async def _run(  # noqa: PLR0913  # one parameter an option
    path: Path,
    book: Path | None,
    sample: int | None,
    seed: int,
    half: str | None,
    *,
    gate: bool,
    fresh: bool,
    quiet: bool,
) -> dict[str, Any]:
    from lectern.cli.eval import _progress, _settings_and_folder
    from lectern.evals.answers import load_answers, measure_answers, summary
    from lectern.evals.runner import EvalContext

    questions = load_answers(path, book)
    if half is not None:
        questions = questions.half("fitted" if half == HALVES[0] else "other")
    if sample is not None:
        questions = questions.sample(sample, seed)
    settings, folder = _settings_and_folder(create=True)
    with _progress(quiet=quiet) as advance:
        context = EvalContext(settings=settings, cache=folder / "cache", fresh=fresh, advance=advance)
        return summary(await measure_answers(questions, context, gate=gate))
