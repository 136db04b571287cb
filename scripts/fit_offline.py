"""Fits the weights of `answering/ranking.py` and writes them to `answering/ranking.json`.

    python scripts/fit_offline.py SET [--book BOOK] [SET [--book BOOK] …]

A set is a folder with a `queries.jsonl` whose questions have `answers`; its book is `docs` in it, or the folder named.
The half that `lectern eval answers --half fitted` asks is fitted on; `--half other` is left for reporting. Nothing is
random.

A quote is right when a known answer stands in it. The weights make the right quotes of each question as likely as
possible among all of its quotes (conditional logit), and a ridge holds them near PRIOR, which is 0 for most.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lectern import Settings, open_lectern
from lectern.answering.offline import OfflineWriter, shortlist
from lectern.answering.ranking import WEIGHTS, Signals
from lectern.embedders.minilm import LocalEmbedder
from lectern.evals.answer_sets import load_answers
from lectern.evals.answers import TOP_K, passages_of, says

RIDGE = 1.0
STEPS, RATE = 600, 0.05
# What questions about an encyclopaedia hardly show: textbooks announce, and learners ask what words mean and quote.
PRIOR = {"fits_definition": 0.75, "idle": -3.0, "echo": -3.0, "beside_echo": 2.0}
FIRM = 25.0  # the ridge of those

Row = tuple[list[Signals], list[bool]]
Array = np.ndarray[Any, np.dtype[np.float64]]


async def rows_of(folder: Path, book: Path | None) -> list[Row]:
    """For each question the signals of its quotes, and which of them answer."""
    questions = load_answers(folder, book).half("fitted")
    writer = OfflineWriter(LocalEmbedder())
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as home:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(book or folder / "docs", book="fitted")
            for one in questions.asked:
                hits = (await lectern.search(one.text, book="fitted", limit=TOP_K)).hits
                asked = shortlist(one.text, passages_of(hits))
                right = [says(found.quote.text, one.answers) for found in asked.found]
                if any(right) and not all(right):
                    rows.append((await writer.signals(asked), right))
    print(f"{folder.name}: {len(rows)} of {len(questions.asked)} questions can be learnt from")
    return rows


def fit(rows: list[Row]) -> dict[str, float]:
    """Gradient ascent with Adam's steps; the function has one top."""
    names = sorted({name for signals, _ in rows for one in signals for name in one})
    values = np.array([[one.get(name, 0.0) for name in names] for signals, _ in rows for one in signals])
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
        gradient: Array = values.T @ (among_right - among_all) - ridge * (weights - prior)
        slow = 0.9 * slow + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = RATE * (1 - step / STEPS)
        weights = weights + rate * (slow / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


def named(arguments: list[str]) -> list[tuple[Path, Path | None]]:
    """Sets, each with its book."""
    found: list[tuple[Path, Path | None]] = []
    words = iter(arguments)
    for word in words:
        if word == "--book":
            found[-1] = (found[-1][0], Path(next(words)))
        else:
            found.append((Path(word), None))
    return found


def main() -> None:
    """Fit on the fitted halves of all sets together."""
    sets = named(sys.argv[1:])
    rows = [row for folder, book in sets for row in asyncio.run(rows_of(folder, book))]
    weights = fit(rows)
    made = {
        "sets": [folder.name for folder, _ in sets],
        "questions": len(rows),
        "ridge": RIDGE,
        "prior": PRIOR,
        "firm": FIRM,
    }
    WEIGHTS.write_text(json.dumps({"fitted_on": made, "weights": weights}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(weights, indent=2))


if __name__ == "__main__":
    main()
