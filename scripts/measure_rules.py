"""What each rule of the offline model is worth: the same questions with every rule, without each in turn, without any.

    PYTHONPATH=scripts python scripts/measure_rules.py [--json FILE] [--only rules|golden|books]

Three sets are asked as readers ask, through `Lectern.ask`:

- `rules`: `examples/golden/offline-rules`, written to measure these rules: prices, years, sizes, counts, siblings,
  definitions, misspelt words and lessons with similar titles, covered by a book or near misses;
- `golden`: the sample book's own questions;
- `books`: the `reported` books of `book_questions.py`.

Books other than the sample lie in `../shared/data`; where they are absent, their questions are left out.

A covered question is `right` when an answer stands in the reply, `first` when it stands in the first sentence, `mixed`
when the reply is right and also has a sentence with a value that is wrong and no answer. A near miss is right when it
is refused; `value` counts those answered with a value that the set names as wrong. `high` counts wrong replies with
high confidence. Rules are switched off by replacing them in this process; nothing is random.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from book_questions import ROOT, SHARED, by_book, lessons

from lectern import Lectern, Settings, open_lectern
from lectern.confidence import locating as location
from lectern.confidence import requirements
from lectern.domain.chunks import Vector
from lectern.domain.replies import Answer
from lectern.evals.answers import says
from lectern.models.local import answer_locator as finding
from lectern.models.local.embedder import LocalEmbedder
from lectern.models.local.entailment import LocalEntailment
from lectern.ports.index import Purpose

SAMPLE = "examples/physical-ai-robotics/docs"
GOLDEN = ROOT / "examples" / "golden"
SETS = ("rules", "golden", "books")

Patch = tuple[Any, str, Any]  # where, what, by what


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question; without answers it is a near miss."""

    set: str
    id: str
    book: str
    kind: str
    text: str
    answers: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a question."""

    right: bool
    first: bool
    mixed: bool
    value: bool
    refused: bool
    high: bool
    reply: str


def cases_of_rules() -> list[Case]:
    """The set that was written for this."""
    lines = map(json.loads, (GOLDEN / "offline-rules" / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Case(
            set="rules",
            id=line["_id"],
            book=line["meta"]["book"],
            kind=line["meta"]["type"],
            text=line["text"],
            answers=tuple(line["answers"]),
            wrong=tuple(line["wrong"]),
        )
        for line in lines
    ]


def cases_of_golden() -> list[Case]:
    """The sample book's questions, follow-ups in full."""
    lines = map(
        json.loads, (GOLDEN / "physical-ai-robotics" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    )
    return [
        Case(
            set="golden",
            id=line["_id"],
            book=SAMPLE,
            kind=line["meta"]["type"],
            text=line["meta"].get("standalone") or line["text"],
            answers=tuple(line["answers"]),
        )
        for line in lines
    ]


def cases_of_books() -> list[Case]:
    """Questions about whole books by other authors."""
    if not SHARED.is_dir():
        return []
    return [
        Case(
            set="books",
            id=f"{book}-{number}",
            book=book,
            kind="covered" if question.answerable else "near",
            text=question.text,
            answers=(question.answer,) if question.answerable else (),
        )
        for book, questions in by_book("reported").items()
        for number, question in enumerate(questions)
    ]


RULES: dict[str, list[Patch]] = {
    "model marks": [(requirements, "marks_of", lambda _: set[str]())],
    "sibling titles": [(requirements, "_sibling_titles", lambda *_: {})],
    "quantities": [(requirements, "_quantity_of", lambda _: None)],
    "respelling": [(location, "respell", lambda question, _: question)],
}
VARIANTS: dict[str, list[Patch]] = {
    "all rules": [],
    **{f"without {name}": patches for name, patches in RULES.items()},
    "without any": [patch for patches in RULES.values() for patch in patches],
}


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Some parts of the product replaced."""
    with ExitStack() as stack:
        for owner, name, value in patches:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


@contextmanager
def remembered() -> Iterator[None]:
    """Networks that give each text's numbers again, which are the same, instead of reading it again."""
    vectors: dict[tuple[str, Purpose], Vector] = {}
    odds: dict[tuple[str, str], float | None] = {}
    embed, read = LocalEmbedder.embed, LocalEntailment.log_odds

    async def embedded(self: LocalEmbedder, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        new = [text for text in dict.fromkeys(texts) if (text, purpose) not in vectors]
        new_vectors = await embed(self, new, purpose=purpose) if new else []
        vectors.update({(text, purpose): vector for text, vector in zip(new, new_vectors, strict=True)})
        return [vectors[text, purpose] for text in texts]

    async def judged(self: LocalEntailment, statement: str, evidence: str) -> float | None:
        if (statement, evidence) not in odds:
            odds[statement, evidence] = await read(self, statement, evidence)
        return odds[statement, evidence]

    with patched(
        [(LocalEmbedder, "embed", embedded), (LocalEntailment, "log_odds", judged), (finding, "CACHE_SIZE", 10**6)]
    ):
        yield


async def outcome(lectern: Lectern, case: Case) -> Outcome:
    """Ask one question."""
    reply = await lectern.ask(case.text, book="measured")
    level = reply.account.metrics.confidence_level
    texts = [statement.text for statement in reply.statements] if isinstance(reply, Answer) else []
    whole = "\n".join(texts)
    right = says(whole, case.answers) if case.answers else not texts
    return Outcome(
        right=right,
        first=bool(texts) and says(texts[0], case.answers),
        mixed=right and any(says(text, case.wrong) and not says(text, case.answers) for text in texts),
        value=says(whole, case.wrong),
        refused=not texts,
        high=bool(texts) and not right and level == "high",
        reply=whole,
    )


async def ask_book(book: str, cases: Sequence[Case]) -> dict[str, dict[str, Outcome]]:
    """Every question of a book in every variant."""
    outcomes_by_variant: dict[str, dict[str, Outcome]] = {name: {} for name in VARIANTS}
    with tempfile.TemporaryDirectory() as home, lessons(book) as folder:
        async with open_lectern(Settings(home=Path(home), answerer="offline")) as lectern:
            await lectern.ingest(folder, book="measured")
            for name, patches in VARIANTS.items():
                with patched(patches):
                    for case in cases:
                        outcomes_by_variant[name][f"{case.set}/{case.id}"] = await outcome(lectern, case)
                print(f"{book}: {name}", file=sys.stderr, flush=True)
    return outcomes_by_variant


def table(title: str, cases: Sequence[Case], outcomes_by_variant: Mapping[str, Mapping[str, Outcome]]) -> str:
    """One line a variant."""
    covered = [f"{case.set}/{case.id}" for case in cases if case.answers]
    near = [f"{case.set}/{case.id}" for case in cases if not case.answers]
    lines = [
        f"{title}: {len(covered)} covered, {len(near)} near misses",
        f"{'':<24} right first mixed wrong refused high | refused answered value high",
    ]
    for name, outcomes in outcomes_by_variant.items():
        answers = [outcomes[case_id] for case_id in covered]
        missed = [outcomes[case_id] for case_id in near]
        wrong = sum(not outcome.right and not outcome.refused for outcome in answers)
        lines.append(
            f"{name:<24} {sum(reply.right for reply in answers):5} {sum(reply.first for reply in answers):5}"
            f" {sum(reply.mixed for reply in answers):5} {wrong:5} {sum(reply.refused for reply in answers):7}"
            f" {sum(reply.high for reply in answers):4} | {sum(reply.refused for reply in missed):7}"
            f" {sum(not reply.refused for reply in missed):8} {sum(reply.value for reply in missed):5}"
            f" {sum(reply.high for reply in missed):4}"
        )
    return "\n".join(lines)


def main() -> None:
    """Ask, count, print."""
    parser = argparse.ArgumentParser(description="What each rule of the offline model is worth.")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    parser.add_argument("--only", choices=SETS, action="append", help="ask this set alone")
    options = parser.parse_args()
    loaders = {"rules": cases_of_rules, "golden": cases_of_golden, "books": cases_of_books}
    cases = [case for name in options.only or SETS for case in loaders[name]()]
    cases = [case for case in cases if case.book.startswith("examples/") or (SHARED / case.book).is_dir()]
    outcomes_by_variant: dict[str, dict[str, Outcome]] = {name: {} for name in VARIANTS}
    with remembered():
        for book in dict.fromkeys(case.book for case in cases):
            for name, outcomes in asyncio.run(ask_book(book, [case for case in cases if case.book == book])).items():
                outcomes_by_variant[name] |= outcomes
    for name in options.only or SETS:
        print(table(name, [case for case in cases if case.set == name], outcomes_by_variant), end="\n\n")
    for kind in dict.fromkeys(case.kind for case in cases if case.set == "rules"):
        of_kind = [case for case in cases if case.set == "rules" and case.kind == kind]
        print(table(f"rules, {kind}", of_kind, outcomes_by_variant), end="\n\n")
    if options.json:
        cases_by_set = {
            f"{case.set}/{case.id}": {
                "text": case.text,
                **{name: asdict(outcomes_by_variant[name][f"{case.set}/{case.id}"]) for name in outcomes_by_variant},
            }
            for case in cases
        }
        options.json.write_text(json.dumps(cases_by_set, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
