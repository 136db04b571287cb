"""How both networks learn, and what they say of rows.

The loss has two parts. The whole: the log-odds must say whether the statement is borne out. Its pieces: of a falsehood
that was made of a true statement, those that differ are wrong and the others are not."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from judge.encoding import WIDTH, Array, Set
from judge.networks import DEVICE, PairNetwork, Scores
from judge.rows import UNKNOWN, Row
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

FOLDS = 4
SMOOTH, WARM, LEAST_RATE, WRONG_COUNTS = 0.02, 0.06, 0.02, 3.0
BUCKETS, AT_ONCE, STEP = 40, 512, 16  # batches sorted by length together; rows of a prediction; widths are multiples
FOREIGN = 3_000  # true statements with the evidence of others


@dataclass(frozen=True, slots=True)
class Stage:
    """How to train."""

    epochs: int
    rate: float
    batch: int
    pieces: float  # what the loss of the pieces counts beside that of the whole
    most: int | None = None  # batches of a trial


def read(network: PairNetwork, data: Set, places: Array) -> Scores:
    """Some rows of a set, cut to the longest of them."""
    width = math.ceil(data.length[places].max() / STEP) * STEP
    ids = torch.tensor(data.ids[places][:, :width], device=DEVICE).long()
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        result: Scores = network(ids, torch.tensor(data.second[places], device=DEVICE))
    return result


def loss_of(network: PairNetwork, data: Set, places: Array, pieces: float) -> torch.Tensor:
    """What is wrong with the network's view of some rows."""
    odds, wrong, own = read(network, data, places)
    target, counts, labels = (
        torch.tensor(array[places], device=DEVICE).float() for array in (data.target, data.counts, data.wrong)
    )
    whole = cross_entropy(odds, target * (1 - 2 * SMOOTH) + SMOOTH, reduction="none")
    width = min(wrong.shape[1], WIDTH)
    labels, known = labels[:, :width], own[:, :width] & (labels[:, :width] >= 0)
    weight = torch.tensor(WRONG_COUNTS, device=DEVICE)
    each = cross_entropy(wrong[:, :width], labels.clamp(min=0), reduction="none", pos_weight=weight)
    return ((whole + pieces * (each * known).sum(1) / known.sum(1).clamp(min=1)) * counts).mean()


def train(network: PairNetwork, data: Set, stage: Stage, seed: int = 1) -> None:
    """All epochs of a stage; rows of like length go together."""
    draw = np.random.default_rng(seed)
    torch.manual_seed(seed)
    network.train()
    learning = [weights for weights in network.parameters() if weights.requires_grad]
    groups = [
        {"params": [one for one in learning if one.ndim > 1], "weight_decay": 0.01},
        {"params": [one for one in learning if one.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=stage.rate)
    batches = [one for _ in range(stage.epochs) for one in _batches(data, stage.batch, draw)][: stage.most]
    for step, places in enumerate(batches):
        pace = min(1, (step + 1) / (len(batches) * WARM + 1)) * max(LEAST_RATE, 1 - step / len(batches))
        for group in optimizer.param_groups:
            group["lr"] = stage.rate * pace
        loss = loss_of(network, data, places, stage.pieces)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if step % max(1, len(batches) // 8) == 0:
            print(f"  batch {step} of {len(batches)}: loss {float(loss.detach()):.4f}", flush=True)


def _batches(data: Set, size: int, draw: np.random.Generator) -> list[Array]:
    count = len(data.target)
    parts = np.array_split(draw.permutation(count), max(1, count // (size * BUCKETS)))
    order = np.concatenate([part[np.argsort(data.length[part])] for part in parts])
    made = [order[start : start + size] for start in range(0, count, size)]
    return [made[number] for number in draw.permutation(len(made))]


def predicted(network: PairNetwork, data: Set, at_once: int = AT_ONCE) -> Array:
    """The log-odds of each row."""
    network.eval()
    made, order = np.zeros(len(data.target)), np.argsort(data.length)
    with torch.no_grad():
        for start in range(0, len(order), at_once):
            places = order[start : start + at_once]
            made[places] = read(network, data, places)[0].cpu().numpy()
    return made


def folds_of(rows: Sequence[Row]) -> Array:
    """The fold of each row; those of a group are never parted."""
    groups = sorted({row.group for row in rows})
    random.Random(0).shuffle(groups)
    fold_of = {group: number % FOLDS for number, group in enumerate(groups)}
    return np.array([fold_of[row.group] for row in rows])


def foreign(rows: Sequence[Row], most: int = FOREIGN) -> list[Row]:
    """True statements with the evidence of others, which are false."""
    draw, true = random.Random(5), [row for row in rows if row.true == 1]
    pairs = [(draw.choice(true), draw.choice(true)) for _ in range(most)]
    return [
        mine._replace(evidence=other.evidence, long=other.long, true=0, kind="foreign", part="foreign", origin="")
        for mine, other in pairs
        if mine.group != other.group
    ]


def worth(row: Row, *, teacher: bool) -> float:
    """How much a row counts; nothing if it is not to be learnt from."""
    if teacher and (row.true == UNKNOWN or row.part.endswith("170")):
        return 0.0
    if row.part == "fit":
        return 0.7
    if row.part in {"1", "2", "3", "pairs", "fresh"}:
        return 1.0
    if row.part.endswith(":cited"):
        return 0.3 if row.true == UNKNOWN else 1.0
    if row.part.endswith((":all", ":cited170")):
        return 0.7
    return 0.4 if row.part.endswith(":all170") else 0.5
