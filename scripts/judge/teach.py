"""Trains the teacher: a larger network that reads more evidence, and whose log-odds the judge's network learns from.

    PYTHONPATH=scripts python -m judge.teach WORK_FOLDER all-mpnet-base-v2/model.safetensors [MOST]

reads what `cases.py`, `statements.py`, `variations.py` and `answers.py` wrote there, and writes `teacher.npz`. First
one epoch on statements made by programs, then, once for each fold, on the written ones, the claims of answers, and
what was made of both. Of a row it says what the network without its fold says, so that it does not repeat a label it
has learnt. Statements made by programs are shared out among the folds' networks. It wants a graphics card (ten
minutes on a large one); with MOST, so many rows of each file and three batches are a trial for any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from judge.encoding import Array, Set, encoded, together
from judge.learning import FOLDS, Stage, folds_of, foreign, predicted, train, worth
from judge.networks import DEVICE, Teacher
from judge.rows import GROUND, UNKNOWN, Row
from row_files import read

MADE, WRITTEN = Stage(1, 4e-5, 128, 0.5), Stage(3, 2.5e-5, 64, 0.3)
MIXED, MIXED_COUNTS, FOREIGN_COUNTS = 8_000, 0.3, 0.5
FIT_STEPS = 50


def made_rows(folder: Path, most: int | None = None) -> list[Row]:
    """The statements that programs made."""
    return [row for name in ("synthetic", "harvested") for row in read(folder / f"{name}.jsonl.gz", Row, most)]


def learnt_rows(folder: Path, most: int | None = None) -> list[Row]:
    """All others that something is learnt from, in this order. Answers are left out where there are none."""
    names = ("written", "golden", *GROUND, "variations", "answers")
    files = [folder / f"{name}.jsonl.gz" for name in names]
    rows = [row for file in files if file.exists() for row in read(file, Row, most)]
    return [row for row in rows if row.part != "report" and not row.part.startswith("eval")]


def calibrated(odds: Array, true: Array) -> Array:
    """The same, stretched so that they are right as chances where it is known."""
    known = true != UNKNOWN
    columns = np.stack([odds, np.ones_like(odds)], axis=1)
    weights = np.array([1.0, 0.0])
    for _ in range(FIT_STEPS):
        chance = 1 / (1 + np.exp(-columns[known] @ weights))
        bend = (columns[known] * (chance * (1 - chance))[:, None]).T @ columns[known] + 1e-6 * np.eye(2)
        weights = weights - np.linalg.solve(bend, columns[known].T @ (chance - true[known]))
    return columns @ weights


def fold_set(rows: Sequence[Row], folds: Array, fold: int, written: Set, made: Set) -> Set:
    """What the network of a fold learns from."""
    counts = np.array([worth(row, teacher=True) for row in rows], np.float32)
    mine = np.flatnonzero((counts > 0) & (folds != fold))
    others = foreign([rows[place] for place in mine])
    mixed = np.random.default_rng(fold).choice(len(made.target), min(MIXED, len(made.target)), replace=False)
    return together(
        written.with_values(counts=counts).take(mine),
        encoded(others, teacher=True).counting(FOREIGN_COUNTS),
        made.take(mixed).counting(MIXED_COUNTS),
    )


def main() -> None:
    """Train, predict, write."""
    folder, origin = Path(sys.argv[1]), Path(sys.argv[2])
    most = int(sys.argv[3]) if sys.argv[3:] else None
    stages = [Stage(1, stage.rate, 4, stage.pieces, 3) if most else stage for stage in (MADE, WRITTEN)]
    made_of, rows = made_rows(folder, most), learnt_rows(folder, most)
    made, written, folds = encoded(made_of, teacher=True), encoded(rows, teacher=True), folds_of(rows)
    teacher = Teacher(origin).to(DEVICE)
    train(teacher, made, stages[0])
    first = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    odds, made_odds = np.zeros(len(rows)), np.zeros(len(made_of))
    for fold in range(FOLDS):
        teacher.load_state_dict(first)
        train(teacher, fold_set(rows, folds, fold, written, made), stages[1], seed=fold + 1)
        odds[folds == fold] = predicted(teacher, written.take(folds == fold), 256)
        made_odds[fold::FOLDS] = predicted(teacher, made.take(slice(fold, None, FOLDS)), 256)
        torch.save(teacher.state_dict(), folder / f"teacher-{fold}.pt")
    true = np.array([row.true for row in rows])
    both = calibrated(np.concatenate([odds, made_odds]), np.concatenate([true, np.full(len(made_of), UNKNOWN)]))
    np.savez(folder / "teacher.npz", written=both[: len(rows)], made=both[len(rows) :])


if __name__ == "__main__":
    main()
