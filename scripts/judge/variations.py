"""Variations of the written statements: two of them as one, falsified by a program, without their best evidence, with
the evidence of another passage. Of the first it is known whether they are true; of the others only the teacher says.

    PYTHONPATH=scripts python -m judge.variations WORK_FOLDER

writes `variations.jsonl.gz` into the folder. Seeded; the same at every run.
"""
# ruff: noqa: PLR2004  # shares of the recipe stand where they are used

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from judge.cases import Stated, row_of, written_cases
from judge.falsify import falsified
from judge.rows import UNKNOWN, Row
from row_files import write

from lectern.grounding.claims import Claim, read_claim, units_of
from lectern.grounding.features import compare

MAX_WORDS = 55  # of two statements in one: more would not fit the network's 80 word pieces
WAYS = 4  # of joining two statements
NEARBY = (-40, -30, -20, -12, 12, 20, 30, 40)  # statements: about other passages, mostly of the same book

Pair = tuple[Stated, Stated]  # a true statement and the false one that was made of it


def joined(first: str, second: str, way: int) -> str:
    """Two statements as one."""
    head = first.rstrip(" .;")
    small = second[:1].lower() + second[1:] if second[1:2].islower() else second
    return (f"{head}, and {small}", f"{head}; {small}", f"{head}. {second}", f"{head}, while {small}")[way]


def falsehoods(claim: Claim, passages: Sequence[str], most: int, r: Random) -> Iterator[tuple[str, Claim]]:
    """What a program makes of a claim; some of it is still true."""
    made = falsified(claim.text, "\n\n".join(passages), r.randrange(10**9))
    for kind, text in r.sample(made, min(most, len(made))):
        yield f"v-{kind}", read_claim(text)


def without_best(claim: Claim, units: Sequence[Claim]) -> list[Claim]:
    """The units but for the one that is nearest to the claim."""
    found = compare(claim, units)
    return [unit for unit in units if found is None or unit.text != found.best.text]


def alone(pairs: Sequence[Pair], r: Random) -> Iterator[Row]:
    """Variations of single statements."""
    for number, (true, _) in enumerate(pairs):
        claim, units, draw = read_claim(true.text), units_of(true.passages[0]), r.random()
        if draw < 0.45:
            for kind, false in falsehoods(claim, true.passages, 2, r):
                yield row_of(false, units, UNKNOWN, kind, true.group, "variant")._replace(origin=claim.text)
        elif draw < 0.6:
            if rest := without_best(claim, units):
                yield row_of(claim, rest, UNKNOWN, "dropped", true.group, "dropped")
        elif draw < 0.75:
            other = pairs[min(len(pairs) - 1, max(0, number + r.choice(NEARBY) // 2))][0]
            if other.group != true.group:
                yield row_of(claim, units_of(other.passages[0]), UNKNOWN, "other", true.group, "other")


def together(pairs: Sequence[Pair], r: Random) -> Iterator[Row]:
    """Two true statements about a passage as one, and the same with one of them false."""
    about: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        about.setdefault((pair[0].group, pair[0].passages[0]), []).append(pair)
    for (group, passage), those in about.items():
        for _ in range(len(those) // 2 + 1 if len(those) > 1 else 0):
            (first, _), (second, false) = r.sample(those, 2)
            way, head = r.randrange(WAYS), read_claim(first.text).text
            true, untrue = (joined(head, read_claim(one.text).text, way) for one in (second, false))
            for text, is_true, origin in ((true, 1, ""), (untrue, 0, read_claim(true).text)):
                if len(text.split()) <= MAX_WORDS:
                    kind = "merged" if is_true else "merged-false"
                    row = row_of(read_claim(text), units_of(passage), is_true, kind, group, "merged")
                    yield row._replace(origin=origin)


def main() -> None:
    """Write them."""
    cases, r = list(written_cases()), Random(7)
    pairs = list(zip(cases[::2], cases[1::2], strict=True))
    rows = (row for made in (alone, together) for row in made(pairs, r))
    print("variations", write(Path(sys.argv[1]) / "variations.jsonl.gz", rows))


if __name__ == "__main__":
    main()
