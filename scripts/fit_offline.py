"""Fits the weights of `answering/offline/ranking.py` and writes them to `ranking.json` beside it.

    PYTHONPATH=scripts python scripts/fit_offline.py SET [--book BOOK] [SET [--book BOOK] …]

A set is a folder with a `queries.jsonl` whose questions have `answers`; its book is `docs` in it, or the folder named.
The half that `lectern eval answers --half fitted` asks is fitted on; `--half other` is left for reporting. Beside the
sets, the answerable questions about the `fitted` books of `book_questions.py` but those of qa-squad2, of which half is
reported. Nothing is random.

A quote is right when a known answer stands in it. The weights make the right quotes of each question as likely as
possible among all of its quotes (conditional logit), and a ridge holds them near PRIOR, which is 0 for most.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from book_questions import BookQuestion, by_book, lessons

from lectern import Settings, open_lectern
from lectern.answering.offline.ranking import WEIGHTS, Signals
from lectern.answering.offline.writer import OfflineWriter
from lectern.evals.answers import TOP_K, load_answers, passages_of, says
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.models.local.embedder import LocalEmbedder

RIDGE = 1.0
STEPS, RATE = 600, 0.05
# What questions about an encyclopaedia hardly show: textbooks announce, and learners quote the book.
PRIOR = {
    "idle": -3.0,
    "echo": -3.0,
    "beside_echo": 2.0,
    "code_for_code": 1.0,
    "sentence_for_code": -0.5,
}
FIRM = 25.0  # the ridge of those

Row = tuple[list[Signals], list[bool]]  # of one question
Array = np.ndarray[Any, np.dtype[np.float64]]


async def rows_of(name: str, folder: Path, questions: Sequence[tuple[str, tuple[str, ...]]]) -> list[Row]:
    """For each question the signals of its quotes, and which of them answer."""
    writer = OfflineWriter(LocalEmbedder(), LocalAnswerLocator())
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as home:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(folder, book="fitted")
            for text, answers in questions:
                hits = (await lectern.search(text, book="fitted", limit=TOP_K)).hits
                shortlist = await writer.shortlist(text, passages_of(hits))
                right = [says(candidate.quote.text, answers) for candidate in shortlist.candidates]
                if any(right) and not all(right):
                    rows.append((await writer.signals(shortlist), right))
    print(f"{name}: {len(rows)} of {len(questions)} questions can be learnt from")
    return rows


def of_set(folder: Path, book: Path | None) -> list[Row]:
    """The fitted half of a set."""
    questions = [(question.text, question.answers) for question in load_answers(folder, book).half("fitted").questions]
    return asyncio.run(rows_of(folder.name, book or folder / "docs", questions))


def of_book(book: str, questions: Sequence[BookQuestion]) -> list[Row]:
    """All that was asked about a book and is answered there."""
    with lessons(book) as folder:
        return asyncio.run(
            rows_of(
                book, folder, [(question.text, (question.answer,)) for question in questions if question.answerable]
            )
        )


def fit(sets: list[list[Row]]) -> dict[str, float]:
    """Gradient ascent with Adam's steps; the function has one top. A set counts as the root of its size: a thousand
    questions about one book must not outvote those about others."""
    rows = [row for set_rows in sets for row in set_rows]
    say = np.array([len(set_rows) ** -0.5 for set_rows in sets for _ in set_rows])
    say *= len(rows) / say.sum()
    names = sorted({name for signals, _ in rows for signal in signals for name in signal})
    values = np.array([[signal.get(name, 0.0) for name in names] for signals, _ in rows for signal in signals])
    right = np.array([float(is_right) for _, labels in rows for is_right in labels])
    sizes = [len(labels) for _, labels in rows]
    starts, owner = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(rows)), sizes)
    ridge = np.array([FIRM if name in PRIOR else RIDGE for name in names])
    prior = np.array([PRIOR.get(name, 0.0) for name in names])
    weights, slow, square = prior.copy(), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, STEPS + 1):
        raised = np.exp(values @ weights - np.maximum.reduceat(values @ weights, starts)[owner])
        among_all = raised / np.add.reduceat(raised, starts)[owner]
        among_right = raised * right / np.add.reduceat(raised * right, starts)[owner]
        gradient: Array = values.T @ (say[owner] * (among_right - among_all)) - ridge * (weights - prior)
        slow = 0.9 * slow + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = RATE * (1 - step / STEPS)
        weights = weights + rate * (slow / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


def folders_of(arguments: list[str]) -> list[tuple[Path, Path | None]]:
    """Sets, each with its book."""
    folders: list[tuple[Path, Path | None]] = []
    words = iter(arguments)
    for word in words:
        if word == "--book":
            folders[-1] = (folders[-1][0], Path(next(words)))
        else:
            folders.append((Path(word), None))
    return folders


def main() -> None:
    """Fit on the fitted halves of all sets and on the books together."""
    rows = {folder.name: of_set(folder, book) for folder, book in folders_of(sys.argv[1:])}
    books = {book: questions for book, questions in by_book("fitted").items() if not book.startswith("qa-squad2")}
    rows |= {book: of_book(book, questions) for book, questions in books.items()}
    weights = fit(list(rows.values()))
    ranking = {
        "sets": list(rows),
        "questions": sum(map(len, rows.values())),
        "ridge": RIDGE,
        "prior": PRIOR,
        "firm": FIRM,
    }
    WEIGHTS.write_text(json.dumps({"fitted_on": ranking, "weights": weights}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(weights, indent=2))


if __name__ == "__main__":
    main()
