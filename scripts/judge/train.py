"""Trains the network: first on statements made by programs, then on written ones. From the second on once for each
fold of the written passages, to have log-odds for statements that the network had not seen, and once with all.

    PYTHONPATH=scripts python -m judge.train WORK_FOLDER [MOST]

reads what `cases.py` and `statements.py` wrote there, and writes `weights.npz` and `log_odds.json`. Of the statements'
log-odds, those of rounds 1 and 2 are out of fold, those of round 3 the final network's, which never sees it, and those
about the sample book the mean of the folds' networks, which do not see these. It wants a graphics card; with MOST, one
epoch on so many rows of each file is a trial for any machine. The environment is that of `scripts/export_minilm.py`.
Seeded, but the last bits of a card's sums are not: no two runs give the same weights. Those of the shipped network were
made so, but for the start: the original's matrices were rounded to int8 on their way to the card.

The loss has two parts. The whole: the log-odds must say whether the statement is borne out. Its pieces: of a falsehood
that was made of a true statement, those that differ are wrong and the others are not.
"""

from __future__ import annotations

import difflib
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judge.rows import Row
from pair_network import WEIGHTS, embedder, head
from row_files import read
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

GROUND = ("ground-wice", "ground-fm2", "ground-halueval")
WINDOW, LONGEST, MARKS, OPENS, PARTS = 256, 80, 3, 101, 102  # as in lectern.embedders.entailment
WIDTH = LONGEST + 2
FOLDS, SEED = 4, 1
GROUND_COUNTS, MIXED_COUNTS, FOREIGN_COUNTS = 0.7, 0.3, 0.5
MIXED, FOREIGN = 6_000, 500  # rows of each file of the first stage, and true statements with others' evidence
SMOOTH, WARM, LEAST_RATE, WRONG_COUNTS = 0.03, 0.06, 0.02, 3.0
ALIKE, SAME = 0.55, 50  # of a falsehood with what it was made of; characters of their evidence
APART = ("qa", "mcq", "option")  # kinds that are no variants of what stands before them
BUCKETS, AT_ONCE = 40, 512  # batches that are sorted by length together; rows of a prediction
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """How to train."""

    epochs: int
    rate: float
    batch: int
    pieces: float  # what the loss of the pieces counts beside that of the whole


SYNTHETIC_STAGE, WRITTEN_STAGE = Stage(4, 1.5e-4, 256, 0.5), Stage(4, 8e-5, 64, 0.3)


@dataclass(frozen=True, slots=True)
class Set:
    """Rows as the network reads them."""

    ids: Array
    second: Array  # where the evidence begins
    length: Array
    truth: Array
    wrong: Array  # of each piece of the statement: 1, 0, or -1 where nobody can say
    counts: Array

    def take(self, places: Sequence[int] | Array) -> Set:
        """Some of the rows."""
        return Set(*(getattr(self, field.name)[places] for field in fields(Set)))

    def counting(self, counts: float) -> Set:
        """The same, of another worth."""
        return Set(self.ids, self.second, self.length, self.truth, self.wrong, np.full_like(self.counts, counts))


def joined(*sets: Set) -> Set:
    """One set of several."""
    return Set(*(np.concatenate([getattr(part_set, field.name) for part_set in sets]) for field in fields(Set)))


def encoded(rows: Sequence[Row], made_of: Sequence[tuple[int, int]] = ()) -> Set:
    """Texts as word pieces; which of a falsehood's are wrong."""
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    statements, evidence = (
        [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        for texts in ([row.statement for row in rows], [row.evidence for row in rows])
    )
    truth = np.array([row.true for row in rows], np.float32)
    encoded_set = Set(
        np.zeros((len(rows), WINDOW), np.int32), *np.zeros((2, len(rows)), np.int32), truth,
        np.where(truth > 0, 0, -1).astype(np.int8)[:, None].repeat(WIDTH, axis=1), np.ones(len(rows), np.float32),
    )  # fmt: skip
    for place, (statement_ids, theirs) in enumerate(zip(statements, evidence, strict=True)):
        ids = [OPENS, *statement_ids[:LONGEST], PARTS]
        encoded_set.second[place] = len(ids)
        ids += [*theirs[: WINDOW - len(ids) - 1], PARTS]
        encoded_set.ids[place, : len(ids)], encoded_set.length[place] = ids, len(ids)
    for true, false in made_of:
        encoded_set.wrong[false] = differing(statements[true][:LONGEST], statements[false][:LONGEST])
    return encoded_set


def differing(true: list[int], false: list[int]) -> Array:
    """Which pieces were changed; -1 throughout where it is hardly the same statement."""
    wrong = np.zeros(WIDTH, np.int8)
    match = difflib.SequenceMatcher(None, true, false, autojunk=False)
    if match.ratio() < ALIKE:
        return wrong - 1
    for change, _, _, start, end in match.get_opcodes():
        if change in {"replace", "insert"}:
            wrong[1 + start : 1 + end] = 1
        elif change == "delete":  # its neighbours
            wrong[1 + max(start - 1, 0) : 1 + min(start + 1, len(false))] = 1
    return wrong


def chains(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Falsehoods with what they were made of, which stands before them."""
    last = -1
    for place, row in enumerate(rows):
        if row.true:
            last = place
        elif last >= 0 and rows[last].evidence[:SAME] == row.evidence[:SAME] and not row.kind.startswith(APART):
            yield last, place


class Judge(torch.nn.Module):
    """Log-odds of the whole, less the soft maximum over the statement's pieces of how wrong each is."""

    def __init__(self) -> None:
        super().__init__()
        self.bert, self.head, self.token = embedder(), head(0.0), head(-2.0)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, ids: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-odds; for each piece how wrong it is, and whether it is the statement's."""
        places, mask = torch.arange(ids.shape[1], device=ids.device)[None], ids != 0
        types = ((places >= second[:, None]) & mask).long()
        read = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state
        states = self.drop(read)
        wrong, own_pieces = self.token(states)[..., 0].float(), (places > 0) & (places < second[:, None] - 1)
        worst = torch.logsumexp(wrong.masked_fill(~own_pieces, -30.0), 1)
        return self.head(states[:, 0])[:, 0].float() - worst, wrong, own_pieces

    def read(self, data: Set, places: Array) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Some rows of a set, cut to the longest of them."""
        ids = torch.tensor(data.ids[places][:, : data.length[places].max()], device=DEVICE).long()
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            result: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
            result = self(ids, torch.tensor(data.second[places], device=DEVICE))
        return result


def loss_of(judge: Judge, data: Set, places: Array, pieces: float) -> torch.Tensor:
    """What is wrong with the network's view of some rows."""
    odds, wrong, own_pieces = judge.read(data, places)
    truth, counts, labels = (
        torch.tensor(array[places], device=DEVICE).float() for array in (data.truth, data.counts, data.wrong)
    )
    whole = cross_entropy(odds, truth * (1 - 2 * SMOOTH) + SMOOTH, reduction="none")
    width = min(wrong.shape[1], WIDTH)
    labels, labelled = labels[:, :width], own_pieces[:, :width] & (labels[:, :width] >= 0)
    weight = torch.tensor(WRONG_COUNTS, device=DEVICE)
    losses = cross_entropy(wrong[:, :width], labels.clamp(min=0), reduction="none", pos_weight=weight)
    return ((whole + pieces * (losses * labelled).sum(1) / labelled.sum(1).clamp(min=1)) * counts).mean()


def train(judge: Judge, data: Set, stage: Stage) -> None:
    """All epochs of a stage; rows of like length go together."""
    draw = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    judge.train()
    optimizer = torch.optim.AdamW(judge.parameters(), lr=stage.rate, weight_decay=0.01)
    count, step = len(data.truth), 0
    total = math.ceil(count / stage.batch) * stage.epochs
    for epoch in range(stage.epochs):
        parts = np.array_split(draw.permutation(count), max(1, count // (stage.batch * BUCKETS)))
        order = np.concatenate([part[np.argsort(data.length[part])] for part in parts])
        batches = [order[start : start + stage.batch] for start in range(0, count, stage.batch)]
        total_loss = 0.0
        for number in draw.permutation(len(batches)):
            pace = min(1, (step + 1) / (total * WARM + 1)) * max(LEAST_RATE, 1 - step / total)
            optimizer.param_groups[0]["lr"] = stage.rate * pace
            loss = loss_of(judge, data, batches[number], stage.pieces)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
            optimizer.step()
            step, total_loss = step + 1, total_loss + float(loss.detach()) * len(batches[number])
        print(f"  epoch {epoch}: loss {total_loss / count:.4f}", flush=True)


def predicted(judge: Judge, data: Set) -> Array:
    """The log-odds of each row."""
    judge.eval()
    odds, order = np.zeros(len(data.truth)), np.argsort(data.length)
    with torch.no_grad():
        for start in range(0, len(order), AT_ONCE):
            places = order[start : start + AT_ONCE]
            odds[places] = judge.read(data, places)[0].cpu().numpy()
    return odds


def mixture(rows: Sequence[Row], known_places: Array, sets: Sequence[Set]) -> Set:
    """Beside the written statements: some of the first stage, lest it be forgotten, and true ones with the evidence of
    others."""
    draw = np.random.default_rng(SEED)
    old = [
        part_set.take(draw.choice(len(part_set.truth), min(MIXED, len(part_set.truth)), replace=False))
        for part_set in sets
    ]
    true, foreign = [place for place in known_places if rows[place].true], []
    for place in draw.choice(true, min(FOREIGN, len(true)), replace=False):
        own_row, other_row = rows[place], rows[draw.choice(true)]
        if own_row.group != other_row.group:
            foreign.append(own_row._replace(evidence=other_row.evidence, true=0))
    return joined(*(part_set.counting(MIXED_COUNTS) for part_set in old), encoded(foreign).counting(FOREIGN_COUNTS))


def main() -> None:
    """Train, predict, write."""
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None
    stages = [
        Stage(1, *(stage.rate, stage.batch, stage.pieces)) if most else stage
        for stage in (SYNTHETIC_STAGE, WRITTEN_STAGE)
    ]
    rows = {
        name: read(folder / f"{name}.jsonl.gz", Row, most) for name in ("synthetic", "harvested", "written", "golden")
    }
    sets = [encoded(rows[name], list(chains(rows[name]))) for name in ("synthetic", "harvested")]
    written_set = encoded(rows["written"], [(place, place + 1) for place in range(0, len(rows["written"]) - 1, 2)])
    golden = encoded(rows["golden"])
    fitting = [[row for row in read(folder / f"{name}.jsonl.gz", Row, most) if row.part == "fit"] for name in GROUND]
    ground = joined(*map(encoded, fitting)).counting(GROUND_COUNTS)
    known_places = np.array([place for place, row in enumerate(rows["written"]) if row.part != "3"])
    groups = sorted({rows["written"][place].group for place in known_places})
    random.Random(0).shuffle(groups)
    fold_of = {group: number % FOLDS for number, group in enumerate(groups)}
    folds = np.array([fold_of.get(row.group, -1) for row in rows["written"]])

    judge = Judge().to(DEVICE)
    train(judge, joined(*sets), stages[0])
    first = {name: tensor.clone() for name, tensor in judge.state_dict().items()}
    odds, lines_seen = np.zeros(len(folds)), []
    for fold in [*range(FOLDS), None]:
        judge.load_state_dict(first)
        training_places = known_places if fold is None else known_places[folds[known_places] != fold]
        parts = [written_set.take(training_places), ground, mixture(rows["written"], training_places, sets)]
        train(judge, joined(*parts, *([golden] if fold is None else [])), stages[1])
        held_out = folds == (-1 if fold is None else fold)
        if held_out.any():
            odds[held_out] = predicted(judge, written_set.take(held_out))
        if fold is not None:
            lines_seen.append(predicted(judge, golden))
    result = {"written": odds.tolist(), "golden": np.mean(lines_seen, axis=0).tolist()}
    (folder / "log_odds.json").write_text(json.dumps(result), encoding="utf-8")
    np.savez(folder / "weights.npz", **{name: tensor.cpu().numpy() for name, tensor in judge.state_dict().items()})


if __name__ == "__main__":
    main()
