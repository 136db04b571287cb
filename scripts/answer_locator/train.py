"""Trains the network that finds answers.

    PYTHONPATH=scripts python -m answer_locator.train WORK_FOLDER [MOST]

reads what `cases.py` wrote there and, if it is there, what the teacher says (`teach.py`), and writes `weights.npz` and
`measured.json`. It wants a graphics card; with MOST, one epoch on so many rows is a trial for any machine. The
environment is that of `scripts/export_minilm.py`. Seeded, but the last bits of a card's sums are not: no two runs give
the same weights. Those of the shipped network were made so, but for the start: the originals were rounded on their way
to the card, MiniLM to fp16 and the teacher to int8.

The loss is the cross-entropy over "none of them" and the pieces; where several answer and one is best, it counts twice.
A teacher's probabilities are mixed in: nobody read whether a passage that is next in meaning answers, too, so there the
teacher counts most.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from answer_locator.rows import Row
from answer_locator.windows import MOST, WINDOW, windows
from pair_network import WEIGHTS, embedder, head
from row_files import read
from tokenizers import Tokenizer

SEED = 1
TEACHER_SHARE, TEACHER_SHARE_UNREAD = 0.5, 0.85  # of the target, for rows that somebody read and for others
UNREAD = ("other", "other-near")  # kinds of rows that nobody read
SMOOTH, WARM, LEAST_RATE = 0.02, 0.06, 0.02
ALIKE = ("squad", "nq")  # kinds whose answers are known by a string: no piece that holds it is better than others
HELD_OUT = 10  # of so many passages one
BUCKETS, AT_ONCE, STEP = 40, 512, 16  # batches sorted by length together; windows of a prediction; widths are multiples
NOTHING = -1e4  # the number of a piece that is not there
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to train."""

    epochs: int = 4
    rate: float = 9e-5
    batch: int = 64


@dataclass(frozen=True, slots=True)
class Set:
    """Windows as the network reads them."""

    ids: Array
    second: Array  # where the passage begins
    marks: Array
    there: Array  # which marks are
    answers: Array  # a distribution over none and the pieces
    counts: Array
    length: Array
    row: Array  # whose window it is
    first: Array  # the number of its first piece

    def take(self, places: Array) -> Set:
        """Some of the windows."""
        return Set(*(getattr(self, field.name)[places] for field in fields(Set)))


def encoded(rows: Sequence[Row]) -> Set:
    """All windows of all rows."""
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    texts = list(dict.fromkeys(text for row in rows for text in (row.question, row.heading, *row.pieces)))
    ids_by_text = {
        t: e.ids for t, e in zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True)
    }
    all_windows = [
        (number, window)
        for number, row in enumerate(rows)
        for window in windows(
            ids_by_text[row.question], ids_by_text[row.heading], [ids_by_text[piece] for piece in row.pieces]
        )
    ]
    count = len(all_windows)
    encoded_set = Set(
        np.zeros((count, WINDOW), np.int32), np.zeros(count, np.int32), np.zeros((count, MOST), np.int64),
        np.zeros((count, MOST), bool), np.zeros((count, MOST + 1), np.float32), np.zeros(count, np.float32),
        *np.zeros((3, count), np.int32),
    )  # fmt: skip
    for place, (number, window) in enumerate(all_windows):
        row, size = rows[number], len(window.marks)
        encoded_set.ids[place, : len(window.ids)], encoded_set.length[place] = window.ids, len(window.ids)
        encoded_set.second[place], encoded_set.row[place], encoded_set.first[place] = (
            window.second,
            number,
            window.first,
        )
        encoded_set.marks[place, :size], encoded_set.there[place, :size] = window.marks, True
        answer_places = [at for at in row.answers if window.first <= at < window.first + size]
        for at in answer_places:
            encoded_set.answers[place, 1 + at - window.first] = (
                1.0 if at == row.answers[0] or row.kind in ALIKE else 0.5
            )
        if not answer_places:
            encoded_set.answers[place, 0] = 1.0
        encoded_set.answers[place] /= encoded_set.answers[place].sum()
        encoded_set.counts[place] = row.counts
    return encoded_set


class AnswerLocator(torch.nn.Module):
    """A number for "none of them" from the first place, and one for each piece from its mark."""

    def __init__(self) -> None:
        super().__init__()
        self.bert, self.none, self.mark = embedder(), head(0.0), head(0.0)
        self.drop = torch.nn.Dropout(0.1)

    def states(self, ids: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """A vector for each word piece."""
        at, mask = torch.arange(ids.shape[1], device=ids.device)[None], ids != 0
        types = ((at >= second[:, None]) & mask).long()
        result: torch.Tensor
        result = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state
        return result

    def read(self, data: Set, places: Array) -> torch.Tensor:
        """The numbers of some windows, cut to the longest of them."""
        batch = data.take(places)
        width = math.ceil(batch.length.max() / STEP) * STEP
        ids = torch.tensor(batch.ids[:, :width], device=DEVICE).long()
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            states = self.drop(self.states(ids, torch.tensor(batch.second, device=DEVICE)))
            no_answer, all_marks = self.none(states[:, 0]).float(), self.mark(states)[..., 0].float()
        pieces = torch.gather(all_marks, 1, torch.tensor(batch.marks, device=DEVICE))
        return torch.cat([no_answer, pieces.masked_fill(~torch.tensor(batch.there, device=DEVICE), NOTHING)], 1)


def loss_of(locator: AnswerLocator, data: Set, places: Array) -> torch.Tensor:
    """What is wrong with the network's view of some windows."""
    targets, there, counts = (
        torch.tensor(array[places], device=DEVICE) for array in (data.answers, data.there, data.counts)
    )
    choices = torch.cat([torch.ones_like(targets[:, :1]), there.float()], 1)
    targets = targets * (1 - SMOOTH) + SMOOTH * choices / choices.sum(1, keepdim=True)
    chances = torch.nn.functional.log_softmax(locator.read(data, places), 1)
    return (-(targets * chances).sum(1) * counts).mean()


def train(locator: AnswerLocator, data: Set, plan: Plan) -> None:
    """All epochs; windows of like length go together."""
    draw = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    locator.train()
    learning = [weights for weights in locator.parameters() if weights.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=plan.rate, weight_decay=0.01, fused=DEVICE == "cuda")
    count, step, start = len(data.counts), 0, time.monotonic()
    total = math.ceil(count / plan.batch) * plan.epochs
    for epoch in range(plan.epochs):
        parts = np.array_split(draw.permutation(count), max(1, count // (plan.batch * BUCKETS)))
        order = np.concatenate([part[np.argsort(data.length[part])] for part in parts])
        batches = [order[first : first + plan.batch] for first in range(0, count, plan.batch)]
        total_loss = torch.zeros((), device=DEVICE)
        for number in draw.permutation(len(batches)):
            pace = min(1, (step + 1) / (total * WARM + 1)) * max(LEAST_RATE, 1 - step / total)
            optimizer.param_groups[0]["lr"] = plan.rate * pace
            loss = loss_of(locator, data, batches[number])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            step, total_loss = step + 1, total_loss + loss.detach() * len(batches[number])
        print(f"  epoch {epoch}: loss {float(total_loss) / count:.4f}, {time.monotonic() - start:.0f} s", flush=True)


def numbers_of(locator: AnswerLocator, data: Set) -> Array:
    """The network's numbers of all windows: of "none of them", then of each piece."""
    locator.eval()
    numbers, order = np.zeros((len(data.counts), MOST + 1), np.float32), np.argsort(data.length)
    with torch.no_grad():
        for start in range(0, len(order), AT_ONCE):
            places = order[start : start + AT_ONCE]
            numbers[places] = locator.read(data, places).float().cpu().numpy()
    return numbers


def predicted(locator: AnswerLocator, rows: Sequence[Row], data: Set) -> tuple[Array, Array]:
    """Of each row the log-odds that any piece answers, in its likeliest window, and the likeliest piece."""
    numbers = numbers_of(locator, data)
    odds, likeliest, best = np.full(len(rows), -np.inf), np.zeros(len(rows), int), np.full(len(rows), -np.inf)
    for row, first, scores in zip(data.row, data.first, numbers, strict=True):
        odds[row] = max(odds[row], np.logaddexp.reduce(scores[1:]) - scores[0])
        if scores[1:].max() - scores[0] > best[row]:
            best[row], likeliest[row] = scores[1:].max() - scores[0], first + scores[1:].argmax()
    return odds, likeliest


def figures_line(name: str, rows: Sequence[Row], locator: AnswerLocator, data: Set) -> str:
    """How well the network does on rows that it has not seen."""
    odds, likeliest = predicted(locator, rows, data)
    answered = np.array([bool(row.answers) for row in rows])
    right = np.mean([at in row.answers for row, at in zip(rows, likeliest, strict=True) if row.answers])
    apart = ", ".join(
        f"{_auroc(odds[answered], odds[[row.kind == kind for row in rows]]):.3f} from `{kind}`"
        for kind in sorted({row.kind for row in rows if not row.answers})
    )
    return f"{name}: of {answered.sum():,} answered questions the likeliest piece answers {right:.1%}; AUROC {apart}."


def _auroc(yes: Array, no: Array) -> float:
    ranks = np.argsort(np.argsort(np.concatenate([yes, no]), kind="stable")) + 1
    return float((ranks[: len(yes)].sum() - len(yes) * (len(yes) + 1) / 2) / (len(yes) * len(no)))


def parted(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are learnt from, and those of the passages that are held out."""
    groups = sorted({row.group for row in rows})
    random.Random(0).shuffle(groups)
    held_groups = set(groups[: len(groups) // HELD_OUT])
    return [row for row in rows if row.group not in held_groups], [row for row in rows if row.group in held_groups]


def taught(data: Set, rows: Sequence[Row], chances: Array) -> Set:
    """The windows with the teacher's probabilities mixed into what is to be learnt."""
    shares = [TEACHER_SHARE_UNREAD if rows[row].kind in UNREAD else TEACHER_SHARE for row in data.row]
    share = np.array(shares, np.float32)[:, None]
    answers = (1 - share) * data.answers + share * chances.astype(np.float32)
    return replace(data, answers=answers / answers.sum(1, keepdims=True))


def main() -> None:
    """Train, measure, write."""
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None
    rows, held = parted(read(folder / "rows.jsonl.gz", Row, most))
    reported = read(folder / "reported.jsonl.gz", Row, most)
    data, teacher = encoded(rows), folder / "teacher.npz"
    if teacher.exists():
        data = taught(data, rows, np.load(teacher)["chances"])
    locator = AnswerLocator().to(DEVICE)
    train(locator, data, Plan(epochs=1) if most else Plan())
    np.savez(folder / "weights.npz", **{name: tensor.cpu().numpy() for name, tensor in locator.state_dict().items()})
    lines = [
        figures_line(name, part_rows, locator, encoded(part_rows))
        for name, part_rows in (("Held out", held), ("qa-squad2", reported))
    ]
    print(*lines, sep="\n")
    (folder / "measured.json").write_text(json.dumps({"card": "\n\n".join(lines)}), encoding="utf-8")


if __name__ == "__main__":
    main()
