"""Trains the answer locator with a teacher: a larger network whose opinion of each row the smaller one learns from.

    PYTHONPATH=scripts python -m answer_locator.teach WORK_FOLDER all-mpnet-base-v2/model.safetensors [MOST]

reads what `cases.py` wrote there, and writes `teacher.npz` (of each window of the training rows the teacher's
probabilities); `train.py` learns from it. Rows are cut into two folds by passage. Of a row it says what the network
says that has not learnt from its fold, so that it does not repeat a label. It wants a graphics card (ten minutes on a
large one); with MOST, so many rows are a trial for any machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from answer_locator.rows import Row
from answer_locator.train import (
    DEVICE,
    AnswerLocator,
    Array,
    Plan,
    Set,
    encoded,
    figures_line,
    numbers_of,
    parted,
    train,
)
from judge.encoding import SHIFT, TEACHER_OPENS, TEACHER_PADS, TEACHER_PARTS
from judge.networks import Teacher
from pair_network import head
from row_files import read
from torch.nn.functional import softmax

FOLDS = 2
PLAN = Plan(epochs=2, rate=3e-5, batch=64)
WIDTH, WORDS, OPENS, PARTS = 768, 30_522, 101, 102


class TeacherLocator(AnswerLocator):
    """MPNet in MiniLM's place. Its word pieces are the same, moved by four."""

    def __init__(self, origin: Path) -> None:
        torch.nn.Module.__init__(self)
        self.network, self.none, self.mark = Teacher(origin), head(0.0, WIDTH), head(0.0, WIDTH)
        self.drop = torch.nn.Dropout(0.1)
        moved = torch.arange(WORDS) + SHIFT
        moved[OPENS], moved[PARTS], moved[0] = TEACHER_OPENS, TEACHER_PARTS, TEACHER_PADS
        self.register_buffer("moved", moved)

    def states(self, ids: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """MPNet's."""
        return self.network.states(self.moved[ids], second)


def folds_of(rows: list[Row], data: Set) -> Array:
    """The fold of each window: rows of one passage are never parted."""
    fold_of_group = {group: number % FOLDS for number, group in enumerate(sorted({row.group for row in rows}))}
    return np.array([fold_of_group[rows[row].group] for row in data.row])


def main() -> None:
    """Train on each fold, say what it says of the others, write."""
    folder, origin = Path(sys.argv[1]), Path(sys.argv[2])
    most = int(sys.argv[3]) if sys.argv[3:] else None
    rows, held = parted(read(folder / "rows.jsonl.gz", Row, most))
    data, held_data = encoded(rows), encoded(held)
    folds, chances = folds_of(rows, data), np.zeros(data.answers.shape, np.float16)
    for fold in range(FOLDS):
        teacher = TeacherLocator(origin).to(DEVICE)
        train(teacher, data.take(np.flatnonzero(folds != fold)), PLAN)
        print(figures_line(f"teacher {fold}, held out", held, teacher, held_data), flush=True)
        mine = np.flatnonzero(folds == fold)
        numbers = torch.tensor(numbers_of(teacher, data.take(mine)))
        chances[mine] = softmax(numbers, 1).numpy().astype(np.float16)
        np.savez_compressed(folder / "teacher.npz", chances=chances, folds=folds)


if __name__ == "__main__":
    main()
