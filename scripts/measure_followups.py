"""How much better a follow-up is found when it is made to stand alone by rules, on a set whose questions have a
`history` (user and agent turns).

    python scripts/measure_followups.py SET
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from lectern.answering.followups import leans, standalone_by_rules
from lectern.domain.replies import Exchange
from lectern.evals.benches import open_bench
from lectern.evals.datasets import load_set
from lectern.evals.metrics import intervals, retrieval_scores
from lectern.evals.runner import ranking
from lectern.settings import Settings

REFUSED = ("don't have", "do not have", "couldn't find", "not able to answer")  # how this set's agent refuses


def talk(history: list[dict[str, Any]]) -> tuple[Exchange, ...]:
    """The answered turns before a question; refusals are no context."""
    made: list[Exchange] = []
    for asked, answered in zip(history[::2], history[1::2], strict=False):
        if not any(words in answered["text"][:120] for words in REFUSED):
            made.append(Exchange(question=asked["text"].strip(), answer=answered["text"]))
    return tuple(made)


async def main(folder: Path) -> None:
    """Search for every follow-up bare and made whole."""
    questions = load_set(folder)
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    histories = {line["_id"]: talk(line.get("history") or []) for line in lines}
    follow_ups = [question for question in questions.questions if histories[question.id]]
    documents = questions.books[0].documents
    rows = []
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        opened = open_bench(questions, settings, Path(home), fresh=True, advance=lambda *_: None)
        async with opened as bench:
            for question in follow_ups:
                whole = standalone_by_rules(question.text, histories[question.id])
                scores = []
                for text in (question.text, whole):
                    found = await bench.lectern.search(text, book=question.book_id, limit=20)
                    scores.append(retrieval_scores(ranking(found, documents), question.gold)[1])
                rows.append((scores[0], scores[1], scores[1] - scores[0]))
    leaning = [row for row, question in zip(rows, follow_ups, strict=True) if leans(question.text)]
    for what, some in (("questions with a talk before them", rows), ("of them that lean on it", leaning)):
        print(f"{len(some)} {what}; Recall@5:")
        report(some)


def report(rows: list[tuple[float, float, float]]) -> None:
    """Means with their intervals."""
    for name, column, (low, high) in zip(
        ("bare", "standalone", "gain"), zip(*rows, strict=True), intervals(rows), strict=True
    ):
        print(f"  {name:<11} {sum(column) / len(column):.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
