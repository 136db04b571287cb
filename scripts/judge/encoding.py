"""Rows as the networks read them: word pieces, where the evidence begins, which pieces of a falsehood are wrong."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from judge.rows import Row
from pair_network import WEIGHTS
from tokenizers import Tokenizer

WINDOW, LONGEST, MARKS, OPENS, PARTS = 256, 80, 3, 101, 102  # as in lectern.models.local.entailment
TEACHER_WINDOW = 432
WIDTH = LONGEST + 2
ALIKE = 0.55  # of a falsehood with what it was made of
SHIFT, TEACHER_OPENS, TEACHER_PARTS, TEACHER_PADS = 4, 0, 2, 1  # the teacher's word pieces are the same, moved by four

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Set:
    """Rows as a network reads them."""

    ids: Array
    second: Array  # where the evidence begins
    length: Array
    target: Array  # how likely it is true; below 0 where only the teacher knows
    wrong: Array  # of each piece of the statement: 1, 0, or -1 where nobody can say
    counts: Array

    def take(self, places: Sequence[int] | Array) -> Set:
        """Some of the rows."""
        return Set(*(getattr(self, field.name)[places] for field in fields(Set)))

    def with_values(self, **arrays: Array) -> Set:
        """The same with other targets, counts or wrong pieces."""
        return Set(**{field.name: arrays.get(field.name, getattr(self, field.name)) for field in fields(Set)})

    def counting(self, counts: float) -> Set:
        """The same, of another worth."""
        return self.with_values(counts=np.full_like(self.counts, counts))


def together(*sets: Set) -> Set:
    """One set of several that have the same width."""
    return Set(*(np.concatenate([getattr(one, field.name) for one in sets]) for field in fields(Set)))


def encoded(rows: Sequence[Row], *, teacher: bool = False) -> Set:
    """Texts as word pieces; which of a falsehood's are wrong."""
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    origins = [row.origin for row in rows]
    evidence = [(teacher and row.long) or row.evidence for row in rows]
    statements, evidence_ids, origin_ids = (
        [one.ids for one in tokenizer.encode_batch(texts, add_special_tokens=False)]
        for texts in ([row.statement for row in rows], evidence, origins)
    )
    count, window = len(rows), TEACHER_WINDOW if teacher else WINDOW
    ids, wrong = np.zeros((count, window), np.int32), np.full((count, WIDTH), -1, np.int8)
    second, length = np.zeros((2, count), np.int32)
    for place, (row, statement) in enumerate(zip(rows, statements, strict=True)):
        pieces = [OPENS, *statement[:LONGEST], PARTS]
        second[place] = len(pieces)
        pieces += [*evidence_ids[place][: window - len(pieces) - 1], PARTS]
        ids[place, : len(pieces)], length[place] = pieces, len(pieces)
        if row.true == 1:
            wrong[place] = 0
        elif row.origin:
            wrong[place] = differing(origin_ids[place][:LONGEST], statement[:LONGEST])
    target = np.array([row.true for row in rows], np.float32)
    return Set(for_teacher(ids) if teacher else ids, second, length, target, wrong, np.ones(count, np.float32))


def for_teacher(ids: Array) -> Array:
    """The same word pieces in the teacher's numbers."""
    marks = {0: TEACHER_PADS, OPENS: TEACHER_OPENS, PARTS: TEACHER_PARTS}
    moved = ids + SHIFT
    for mark, its_own in marks.items():
        moved[ids == mark] = its_own
    return moved


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
