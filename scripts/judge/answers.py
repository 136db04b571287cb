"""The claims of answers as language models write them, true and falsified, and variations of them.

    PYTHONPATH=scripts python -m judge.answers WORK_FOLDER PASSAGES_FOLDER ANSWERS.jsonl...

writes `answers.jsonl.gz` into the folder. A line of a file is an answer with the markers `[n]` (`id`, `answer`,
`off_by_one`) and its falsifications (`twins`: `original`, which is replaced by `false`, and `kind`); the passages that
the markers count lie in PASSAGES_FOLDER/ID.json. A file whose name begins with `eval` is for tests: no variations.
"""
# ruff: noqa: PLR2004  # shares of the recipe stand where they are used

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

from judge.cases import row_of
from judge.rows import UNKNOWN, Row
from judge.variations import MAX_WORDS, WAYS, falsehoods, joined, without_best
from row_files import write

from lectern.grounding.answer_claims import AnswerClaim, claims_of
from lectern.grounding.claims import Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for, with_evidence_measures
from lectern.grounding.features import compare

MORE_WORDS = 170  # of evidence, so that the network learns from texts of several lengths
MERGED = 5  # pairs of true claims of an answer that are read as one


@dataclass(frozen=True, slots=True)
class Said:
    """A claim of an answer; `origin` is the true one that it was made of."""

    claim: AnswerClaim
    true: bool
    kind: str
    origin: AnswerClaim | None = None


def said_in(answer: dict[str, Any]) -> Iterator[Said]:
    """The true claims of an answer, then the false ones of its twins."""
    true = claims_of(answer["answer"])
    yield from (Said(claim, true=True, kind="true") for claim in true)
    known = {claim.text for claim in true}
    for twin in answer["twins"]:
        start = answer["answer"].find(twin["original"])
        if start < 0:
            continue
        text = answer["answer"].replace(twin["original"], twin["false"], 1)
        for claim in claims_of(text):
            if claim.start < start + len(twin["false"]) and claim.end > start and claim.text not in known:
                near = [one for one in true if one.start < start + len(twin["original"]) and one.end > start]
                yield Said(claim, true=False, kind=twin["kind"], origin=_nearest(claim, near))


def _nearest(claim: AnswerClaim, others: Sequence[AnswerClaim]) -> AnswerClaim | None:
    return max(others, key=lambda one: SequenceMatcher(None, one.text, claim.text).ratio(), default=None)


def units(passages: Sequence[str]) -> list[Claim]:
    """The units of several passages."""
    return [unit for passage in passages for unit in units_of(passage)]


def rows_of(answer: dict[str, Any], passages: Sequence[str], name: str, r: Random) -> Iterator[Row]:
    """All rows of an answer."""
    said = [one for one in said_in(answer) if one.claim.kind != "listing"]
    group, is_test = f"answer-{answer['id']}", name.startswith("eval")
    for one in said:
        cited = [passages[number - 1] for number in one.claim.citations if 1 <= number <= len(passages)]
        for where, those in (("cited", cited), ("all", passages)):
            # A marker that is off by one makes the cited passages no evidence for a true claim.
            unsure = answer.get("off_by_one") and one.true and where == "cited" and not is_test
            yield from _judged(one, units(those), UNKNOWN if unsure else int(one.true), group, f"{name}:{where}")
        if cited and not is_test:
            yield from _varied(one, cited, [p for p in passages if p not in cited], (group, name), r)
    if not is_test:
        yield from _merged([one for one in said if one.claim.citations], passages, (group, name), r)


def _judged(one: Said, those: Sequence[Claim], true: int, group: str, part: str) -> Iterator[Row]:
    claim = read_claim(one.claim.text)
    if not those or compare(claim, those) is None:
        return
    origin = read_claim(one.origin.text).text if one.origin else ""
    row = row_of(claim, those, true, one.kind, group, part)
    row = row._replace(statement=with_evidence_measures(claim, those), origin=origin)
    yield row
    if (more := evidence_for(claim, those, MORE_WORDS)) != row.evidence:
        yield row._replace(evidence=more, part=f"{part}{MORE_WORDS}", long=row.long if row.long != more else "")


def _varied(one: Said, cited: Sequence[str], others: Sequence[str], place: tuple[str, str], r: Random) -> Iterator[Row]:
    (group, name), claim, those = place, read_claim(one.claim.text), units(cited)
    if one.true:
        for kind, false in falsehoods(claim, cited, 3, r):
            row = row_of(false, those, UNKNOWN, kind, group, f"{name}:variant")
            yield row._replace(origin=claim.text)
    if r.random() < 0.5 and (rest := without_best(claim, those)):
        yield row_of(claim, rest, UNKNOWN, "dropped", group, f"{name}:dropped")
    if r.random() < 0.5 and others and (foreign := units([r.choice(others)])):
        yield row_of(claim, foreign, UNKNOWN, "other", group, f"{name}:other")


def _merged(said: Sequence[Said], passages: Sequence[str], place: tuple[str, str], r: Random) -> Iterator[Row]:
    true = [one for one in said if one.true]
    pairs = [(*r.sample(true, 2), 1) for _ in range(min(MERGED, len(true) // 2))]
    for false in said:
        others = [one for one in true if false.origin and one.claim.text != false.origin.text]
        if not false.true and others:
            both = [r.choice(others), false]
            r.shuffle(both)
            pairs.append((both[0], both[1], 0))
    for first, second, is_true in pairs:
        text = joined(*(read_claim(one.claim.text).text for one in (first, second)), r.randrange(WAYS))
        numbers = dict.fromkeys((*first.claim.citations, *second.claim.citations))
        those = units([passages[number - 1] for number in numbers if 1 <= number <= len(passages)])
        if those and len(text.split()) <= MAX_WORDS:
            kind = "merged" if is_true else "merged-false"
            yield row_of(read_claim(text), those, is_true, kind, place[0], f"{place[1]}:merged")


def main() -> None:
    """Write the rows of all files."""
    folder, stored, *files = map(Path, sys.argv[1:])
    r = Random(3)

    def rows() -> Iterator[Row]:
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                answer = json.loads(line)
                found = json.loads((stored / f"{answer['id']}.json").read_text(encoding="utf-8"))["passages"]
                passages = [f"{passage['breadcrumb']}\n\n{passage['text']}" for passage in found]
                yield from rows_of(answer, passages, file.stem, r)

    print("answers", write(folder / "answers.jsonl.gz", rows()))


if __name__ == "__main__":
    main()
