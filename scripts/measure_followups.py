"""How much better a follow-up is found when it is made self-contained by rules, on a set whose questions have a
`history` (user and agent turns). The rules were made looking at the first half of the conversations alone (by a hash of
their ids); the other half is reported beside it.

    python scripts/measure_followups.py SET [REFUSAL_SET ...]

With a set about refusing: how many of its questions are refused when two others that the book covers were asked before,
so that the reader changes the subject.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from lectern.answering.followups import depends_on_history, standalone_by_rules
from lectern.app.settings import Settings
from lectern.confidence.policies import policy_for
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.evidence import LOW
from lectern.domain.replies import Exchange
from lectern.evals.datasets import QuestionSet, load_set
from lectern.evals.indexed_sets import open_indexed_set
from lectern.evals.metrics import intervals, retrieval_scores
from lectern.evals.refusal import load_refusal
from lectern.evals.runner import ranking

SEED = 3
TURN = "<::>"  # separates a conversation's id from the turn's in this set
REFUSED = ("don't have", "do not have", "couldn't find", "not able to answer")  # how this set's agent refuses


def exchanges(history: list[dict[str, Any]]) -> tuple[Exchange, ...]:
    """The answered turns before a question; refusals are no context."""
    exchanges_made: list[Exchange] = []
    for question, answered in zip(history[::2], history[1::2], strict=False):
        if not any(words in answered["text"][:120] for words in REFUSED):
            exchanges_made.append(Exchange(question=question["text"].strip(), answer=answered["text"]))
    return tuple(exchanges_made)


async def main(folder: Path) -> None:
    """Search for every follow-up bare and made whole."""
    questions = load_set(folder)
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    histories = {line["_id"]: exchanges(line.get("history") or []) for line in lines}
    follow_ups = [question for question in questions.questions if histories[question.id]]
    documents = questions.books[0].documents
    rows = []
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        opened = open_indexed_set(questions, settings, Path(home), fresh=True, advance=lambda *_: None)
        async with opened as indexed_set:
            for question in follow_ups:
                whole = standalone_by_rules(question.text, histories[question.id])
                scores = []
                for text in (question.text, whole):
                    findings = await indexed_set.lectern.search(text, book=question.book_id, limit=20)
                    scores.append(retrieval_scores(ranking(findings, documents), question.gold)[1])
                rows.append((scores[0], scores[1], scores[1] - scores[0]))
    pairs = list(zip(follow_ups, rows, strict=True))
    for half, half_pairs in (
        ("all conversations", pairs),
        ("first half", [pair for pair in pairs if first_half(pair[0].id)]),
        ("other half", [pair for pair in pairs if not first_half(pair[0].id)]),
    ):
        leaning = [row for question, row in half_pairs if depends_on_history(question.text)]
        alone = [row for question, row in half_pairs if not depends_on_history(question.text)]
        for label, label_rows in (
            ("with a conversation before them", [row for _, row in half_pairs]),
            ("lean", leaning),
            ("do not", alone),
        ):
            print(f"{half}, {len(label_rows)} questions: {label}; Recall@5:")
            report(label_rows)


def first_half(name: str) -> bool:
    """On which side a question's conversation is."""
    return int(hashlib.sha256(name.partition(TURN)[0].encode()).hexdigest(), 16) % 2 == 0


def report(rows: list[tuple[float, float, float]]) -> None:
    """Means with their intervals."""
    for name, column, (low, high) in zip(
        ("bare", "standalone", "gain"), zip(*rows, strict=True), intervals(rows), strict=True
    ):
        print(f"  {name:<11} {sum(column) / len(column):.3f} ({low:.3f} to {high:.3f})")


async def switched(folder: Path) -> None:
    """Every question of a refusal set alone, and after two of another subject."""
    questions = load_refusal(folder)
    shell = QuestionSet(name=questions.name, questions=(), books=questions.books, documents=(), left_out={})
    covered = [question.text for question in questions.questions if question.answerable]
    draw = random.Random(SEED)
    refused: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        async with open_indexed_set(shell, settings, Path(home), fresh=True, advance=lambda *_: None) as indexed_set:
            policy = policy_for(
                "calibrated", indexed_set.lectern.app.ingest_deps.collections.current.embedder.fingerprint
            )
            for question in questions.questions:
                before = draw.sample([text for text in covered if text != question.text], 2)
                whole = standalone_by_rules(question.text, [Exchange(question=text, answer="") for text in before])
                weak = []
                for text in (question.text, whole):
                    findings = await indexed_set.lectern.search(text, book=question.book_id, limit=CONFIDENCE_HITS)
                    weak.append(float(policy.measure(text, findings.hits, findings.hits).confidence < LOW))
                refused.setdefault(question.tier, []).append((weak[0], weak[1]))
    for tier, rows in sorted(refused.items()):
        alone, after = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        low, high = intervals(rows)[1]
        print(f"{tier}: {len(rows)} refused in {alone:.3f}, after two others in {after:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
    for argument in sys.argv[2:]:
        asyncio.run(switched(Path(argument)))
