"""`lectern eval refusal`: measures whether covered questions are answered and the others refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lectern.cli.options import Json
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo, print_json

if TYPE_CHECKING:
    from lectern.evals.refusal import RefusalResult

POLICIES = ("calibrated", "thresholds", "relevance")

Set = Annotated[Path, typer.Argument(help="A question set whose questions say whether they are answerable.")]
BookFolder = Annotated[Path | None, typer.Option("--book", help="The book's folder, if it is not beside the set.")]
Foreign = Annotated[
    Path | None, typer.Option("--foreign", help="A queries.jsonl of another subject, asked as uncovered questions.")
]
PolicyName = Annotated[str, typer.Option("--policy", help="calibrated, thresholds or relevance.")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Write reliability and risk (SVG) to this file.")]
Half = Annotated[
    bool, typer.Option("--half", help="Leave every second article out of the book; its questions are then uncovered.")
]
CheckAnswerability = Annotated[
    bool,
    typer.Option("--answerability", help="Check answerability too, as is done without a language model."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Index again; use nothing from an earlier run.")]


def refusal(  # noqa: PLR0913  # one parameter an option
    path: Set,
    book: BookFolder = None,
    foreign: Foreign = None,
    policy: PolicyName = "calibrated",
    picture: Picture = None,
    *,
    half: Half = False,
    answerability: CheckAnswerability = False,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Ask questions that the book covers and ones that it does not: rates of refusal, AUROC and calibration error."""
    if policy not in POLICIES:
        fail(f"--policy must be one of {', '.join(POLICIES)}, not {policy!r}", 2)
    if answerability and policy != "calibrated":
        fail("--answerability belongs to the policy calibrated; leave --policy out", 2)
    if half and book is not None:
        fail("--half leaves documents of a corpus.jsonl out, so it takes no --book", 2)
    result, figures = run_async(
        _run(path, book, foreign, policy, half=half, answerability=answerability, fresh=fresh, quiet=json)
    )
    if picture is not None:
        _draw(result, picture)
    if json:
        print_json(figures)
    else:
        from lectern.evals.refusal import refusal_text

        echo(refusal_text(figures))


async def _run(  # noqa: PLR0913  # one parameter an option
    path: Path,
    book: Path | None,
    foreign: Path | None,
    policy: str,
    *,
    half: bool,
    answerability: bool,
    fresh: bool,
    quiet: bool,
) -> tuple[RefusalResult, dict[str, Any]]:
    from lectern.cli.eval import _progress, _settings_and_folder
    from lectern.evals.refusal import load_refusal, measure_refusal, read_labelled, summary, with_foreign
    from lectern.evals.runner import EvalContext

    questions = load_refusal(path, book, half=half)
    if foreign is not None:
        questions = with_foreign(questions, read_labelled(foreign))
    settings, folder = _settings_and_folder(create=True)
    with _progress(quiet=quiet) as advance:
        context = EvalContext(settings=settings, cache=folder / "cache", fresh=fresh, advance=advance)
        result = await measure_refusal(questions, context, policy=policy, answerability=answerability)
    return result, summary(result)


def _draw(result: RefusalResult, picture: Path) -> None:
    from lectern.evals.refusal import arrays
    from lectern.evals.refusal_picture import draw_chart

    title = f"{result.name}: {len(result.scored_outcomes())} questions · {result.policy} · {result.embedder}"
    try:
        picture.write_text(draw_chart(title, *arrays(result.scored_outcomes())), encoding="utf-8")
    except OSError as exc:
        fail(f"{picture} cannot be written ({exc.strerror})", 2)
