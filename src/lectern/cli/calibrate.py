"""`lectern calibrate`: fits the confidence to one book."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.app.commands import Calibrate, JudgedQuestion
from lectern.cli.options import Book, BookArgument, Direct, Json, book_from_either
from lectern.cli.remote import run_one
from lectern.cli.render import run_async
from lectern.cli.terminal import echo, print_json

Questions = Annotated[
    Path | None,
    typer.Option(
        "--questions",
        help="A queries.jsonl whose lines have `text` and `answerable`; default: questions made from the book.",
    ),
]
FIGURE_LABELS = {
    "false_refusal_rate": "covered, but refused",
    "refusal_rate": "uncovered, and refused",
    "auroc": "AUROC",
    "ece": "calibration error",
    "log_loss": "log loss",
}
PERCENTAGES = ("false_refusal_rate", "refusal_rate")


def calibrate(
    book: BookArgument = None,
    questions: Questions = None,
    *,
    book_option: Book = None,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Fit the confidence to a book, from labelled questions or from the book's own headings and sentences."""
    file = questions / "queries.jsonl" if questions is not None and questions.is_dir() else questions
    report = run_async(_calibrate(book_from_either(book, book_option), file, direct=direct))
    if json:
        print_json(report)
    else:
        _show(report)


async def _calibrate(book: str | None, questions: Path | None, *, direct: bool) -> dict[str, Any]:
    judged: tuple[JudgedQuestion, ...] = ()
    if questions is not None:
        from lectern.evals.refusal import read_labelled

        judged = tuple(JudgedQuestion(text=line.text, answerable=line.answerable) for line in read_labelled(questions))
    return await run_one(Calibrate(book=book, questions=judged), direct=direct)


def _show(report: dict[str, Any]) -> None:
    source = "labelled questions" if report["source"] == "questions" else "questions made of the book"
    echo(f"{report['book_id']} · {report['fingerprint']}", bold=True)
    echo(f"{report['covered']} covered and {report['uncovered']} uncovered {source}; on the half not fitted on:")
    for name, words in FIGURE_LABELS.items():
        before, after = report["before"][name], report["after"][name]
        style = "{:.1%}" if name in PERCENTAGES else "{:.3f}"
        echo(f"  {words:<24} {style.format(before)} → {style.format(after)}")
    if report["stored"] is None:
        echo("The parameters in use do as well: nothing was changed.")
        return
    echo("Changed:")
    was = dict(zip(report["was"]["signals"], report["was"]["weights"], strict=True))
    for name, weight in zip(report["now"]["signals"], report["now"]["weights"], strict=True):
        echo(f"  {name:<12} {was.get(name, 0.0):.2f} → {weight:.2f}")
    for name in ("intercept", "floor"):
        echo(f"  {name:<12} {report['was'][name]:.2f} → {report['now'][name]:.2f}")
    for (before, relevance), (after, _) in zip(
        report["was"]["scale"]["points"], report["now"]["scale"]["points"], strict=True
    ):
        if 0 < relevance < 1:
            echo(f"  relevance {relevance:.2f} is the cosine {before:.2f} → {after:.2f}")
    echo(f"Stored: {report['stored']}")
