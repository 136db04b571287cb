"""Trains the judge's network by what is known of statements and by what its teacher says of them: first on those made
by programs, then on written ones, claims of answers, and what was made of both. The second stage is done once for each
fold of passages and answers, to have log-odds for rows that the network had not seen, and once with all.

    PYTHONPATH=scripts python -m judge.train WORK_FOLDER [MOST]

reads what the teacher read and what it wrote (`teach.py`), and writes `weights.npz` and `log_odds.json`: the log-odds
of every row, out of fold, by its texts. It wants a graphics card; with MOST, so many rows of each file and three
batches are a trial for any machine. The environment is that of `scripts/export_minilm.py`. Seeded, but the last bits of
a card's sums are not: no two runs give the same weights. Those of the shipped network were made so, but for the start
of both networks: the originals' matrices were rounded to int8 on their way to the card.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from judge.encoding import Array, Set, encoded, together
from judge.learning import FOLDS, Stage, folds_of, foreign, predicted, train, worth
from judge.networks import DEVICE, Judge
from judge.rows import UNKNOWN, Row
from judge.teach import learnt_rows, made_rows

MADE, WRITTEN = Stage(4, 1.5e-4, 256, 0.5), Stage(4, 1.2e-4, 128, 0.3)
MADE_KNOWN, KNOWN = 0.4, 0.5  # what the label counts; the rest is the teacher's
MIXED, MIXED_COUNTS, FOREIGN_COUNTS = 20_000, 0.3, 0.5
SURELY_FALSE, SURELY_TRUE = 0.3, 0.7  # by the teacher: which pieces are wrong is known only if it agrees


def taught(data: Set, odds: Array, known: float) -> Set:
    """Labels and the teacher's view as one target."""
    chance = 1 / (1 + np.exp(-odds))
    target = np.where(data.target >= 0, known * data.target + (1 - known) * chance, chance).astype(np.float32)
    wrong = data.wrong.copy()
    wrong[(data.target == UNKNOWN) & (chance > SURELY_FALSE)] = -1
    wrong[(data.target == 0) & (chance > SURELY_TRUE)] = -1
    return data.with_values(target=target, wrong=wrong)


def stage_set(rows: Sequence[Row], mine: Array, written: Set, made: Set) -> Set:
    """What the second stage learns from: some rows, true ones with the evidence of others, and some of the first stage,
    lest it be forgotten."""
    counts = np.array([worth(row, teacher=False) for row in rows], np.float32)
    mixed = np.random.default_rng(1).choice(len(made.target), min(MIXED, len(made.target)), replace=False)
    return together(
        written.with_values(counts=counts).take(mine),
        encoded(foreign([rows[place] for place in mine])).counting(FOREIGN_COUNTS),
        made.take(mixed).counting(MIXED_COUNTS),
    )


def log_odds_by_text(rows: Sequence[Row], odds: Array) -> dict[str, float]:
    """The log-odds by statement and evidence; `scripts/fit_judge.py` looks them up."""
    return {f"{row.statement}\n{row.evidence}": value for row, value in zip(rows, odds.round(4).tolist(), strict=True)}


def main() -> None:
    """Train, predict, write."""
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None
    stages = [Stage(1, stage.rate, 8, stage.pieces, 3) if most else stage for stage in (MADE, WRITTEN)]
    made_of, rows, said = made_rows(folder, most), learnt_rows(folder, most), np.load(folder / "teacher.npz")
    made = taught(encoded(made_of), said["made"], MADE_KNOWN)
    written, folds = taught(encoded(rows), said["written"], KNOWN), folds_of(rows)
    judge = Judge().to(DEVICE)
    train(judge, made, stages[0])
    first = {name: tensor.clone() for name, tensor in judge.state_dict().items()}
    odds = np.zeros(len(rows))
    for fold in [*range(FOLDS), None]:
        judge.load_state_dict(first)
        train(judge, stage_set(rows, np.flatnonzero(folds != fold), written, made), stages[1])
        if fold is not None:
            odds[folds == fold] = predicted(judge, written.take(folds == fold))
    (folder / "log_odds.json").write_text(json.dumps(log_odds_by_text(rows, odds)), encoding="utf-8")
    np.savez(folder / "weights.npz", **{name: tensor.cpu().numpy() for name, tensor in judge.state_dict().items()})


if __name__ == "__main__":
    main()
