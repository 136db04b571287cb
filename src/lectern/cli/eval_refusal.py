"""`lectern eval refusal`: whether what the book covers is answered, and the rest refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lectern.cli.options import Json
from lectern.cli.render import carry, fail, print_json

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
Look = Annotated[
    bool,
    typer.Option("--second-look", help="Have the answer locator read the passages too, as without a language model."),
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
    answerability: Look = False,
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Ask questions that the book covers and ones that it does not: rates of refusal, AUROC and calibration error."""
    if policy not in POLICIES:
        fail(f"--policy must be one of {', '.join(POLICIES)}, not {policy!r}", 2)
    if answerability and policy != "calibrated":
        fail("--second-look belongs to the policy calibrated; leave --policy out", 2)
    if half and book is not None:
        fail("--half leaves documents of a corpus.jsonl out, so it takes no --book", 2)
    found, told = carry(_run(path, book, foreign, policy, half=half, look=answerability, fresh=fresh, quiet=json))
    if picture is not None:
        _draw(found, picture)
    if json:
        print_json(told)
    else:
        from lectern.evals.refusal import refusal_text

        typer.echo(refusal_text(told))


async def _run(  # noqa: PLR0913  # what was typed
    path: Path,
    book: Path | None,
    foreign: Path | None,
    policy: str,
    *,
    half: bool,
    look: bool,
    fresh: bool,
    quiet: bool,
) -> tuple[RefusalResult, dict[str, Any]]:
    from lectern.cli.eval import _place, _progress
    from lectern.evals.refusal import load_refusal, measure_refusal, read_labelled, summary, with_foreign
    from lectern.evals.runner import EvalContext

    questions = load_refusal(path, book, half=half)
    if foreign is not None:
        questions = with_foreign(questions, read_labelled(foreign))
    settings, folder = _place(create=True)
    with _progress(quiet=quiet) as advance:
        context = EvalContext(settings=settings, cache=folder / "cache", fresh=fresh, advance=advance)
        found = await measure_refusal(questions, context, policy=policy, answerability=look)
    return found, summary(found)


def _draw(found: RefusalResult, picture: Path) -> None:
    from lectern.evals.refusal import arrays
    from lectern.evals.refusal_picture import draw_chart

    title = f"{found.name}: {len(found.scored_outcomes())} questions · {found.policy} · {found.embedder}"
    try:
        picture.write_text(draw_chart(title, *arrays(found.scored_outcomes())), encoding="utf-8")
    except OSError as exc:
        fail(f"{picture} cannot be written ({exc.strerror})", 2)
