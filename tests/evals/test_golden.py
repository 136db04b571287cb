"""The sample book's golden questions: they gate what search finds, kind by kind, and that the set itself is right."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from lectern.app.settings import Settings
from lectern.evals.datasets import load_set
from lectern.evals.runner import EvalContext, evaluate
from lectern.reading.headings import atx, heading_text
from tests.conftest import ROOT, SAMPLE_BOOK

GOLDEN = ROOT / "examples" / "golden" / "physical-ai-robotics"
LEAST = {  # recall@5 of hybrid search; measured with a little room for a lesson rewritten
    "fact": 0.95,
    "code": 0.9,
    "table": 0.9,
    "identifier": 0.95,
    "quoted": 0.95,
    "typo": 0.9,
    "paraphrase": 0.65,
}


def lines() -> list[dict]:
    """Every line of the set."""
    return [json.loads(line) for line in (GOLDEN / "queries.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Recall@5 by kind and mode, through the real pipeline."""
    import asyncio

    home = tmp_path_factory.mktemp("golden")
    context = EvalContext(settings=Settings(home=home), cache=home, fresh=True, advance=lambda *_: None)
    run = asyncio.run(evaluate("retrieval", [load_set(GOLDEN, SAMPLE_BOOK)], context))
    [result] = run.sets
    recalls: dict[str, dict[str, float]] = {}
    for kind in set(result.kinds.values()):
        question_ids = {question for question, question_kind in result.kinds.items() if question_kind == kind}
        recalls[kind] = {
            mode: mode_scores.for_questions(question_ids).figures()["recall@5"]
            for mode, mode_scores in result.modes.items()
        }
    recalls["all"] = {mode: mode_scores.figures()["recall@5"] for mode, mode_scores in result.modes.items()}
    return recalls


@pytest.mark.parametrize("kind", LEAST)
def test_every_kind_of_question_is_found(kinds: dict, kind: str) -> None:
    """Plain questions, other words than the book's, code, tables, identifiers, quotes and typing mistakes."""
    assert kinds[kind]["hybrid"] >= LEAST[kind]


def test_hybrid_is_better_than_either_search_alone(kinds: dict) -> None:
    """Over all questions the fused order beats meaning alone and words alone."""
    assert kinds["all"]["hybrid"] > max(kinds["all"]["dense"], kinds["all"]["lexical"])


def test_the_set_is_what_it_says() -> None:
    """At least 60 questions that can be answered, near and far ones that cannot, follow-ups and structure questions;
    every gold section and every answer stands in the book."""
    type_counts = Counter(line["meta"]["type"] for line in lines())
    assert sum(line["answerable"] for line in lines()) >= 60
    assert all(type_counts[kind] >= 8 for kind in ("near", "far", "followup", "structure"))
    for line in lines():
        for gold in line["gold"]:
            text = (SAMPLE_BOOK / gold["doc"]).read_text(encoding="utf-8")
            headings = {heading_text(heading) for row in text.splitlines() if (heading := atx(row)) is not None}
            assert gold["section"] is None or gold["section"] in headings, line["_id"]
        whole = " ".join(plain((SAMPLE_BOOK / gold["doc"]).read_text(encoding="utf-8")) for gold in line["gold"])
        assert all(plain(answer) in whole for answer in line["answers"]), line["_id"]


def plain(text: str) -> str:
    """Words without markup, so that a line break or a bold word does not matter."""
    return " ".join(re.sub(r"[*_`|\\]", "", text).lower().split())


def test_judged_pairs_quote_the_book() -> None:
    """Every passage of the judged pairs stands in its lesson, word for word."""
    pairs = Path(ROOT / "examples" / "golden" / "judge" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    for pair in map(json.loads, pairs):
        assert pair["passage"] in (SAMPLE_BOOK / pair["doc"]).read_text(encoding="utf-8"), pair["_id"]
