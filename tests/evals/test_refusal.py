"""`eval refusal` from end to end: small sets through the real pipeline, and the shapes that sets come in."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from lectern.app.settings import Settings
from lectern.domain.errors import BadInput, SourceError
from lectern.evals.refusal import (
    Outcome,
    RefusalResult,
    load_refusal,
    measure_refusal,
    read_labelled,
    refusal_text,
    summary,
    with_foreign,
)
from lectern.evals.refusal_picture import draw_chart
from lectern.evals.runner import EvalContext
from tests.conftest import SHARED_DATA
from tests.evals.making import QUERIES, question_set, write_files

FAR = [
    {"_id": "f1", "text": "Who painted the Mona Lisa?", "answerable": False, "tier": "far"},
    {"_id": "f2", "text": "Which team won the football cup in Lisbon?", "answerable": False, "tier": "far"},
    {"_id": "n1", "text": "How many bees live in one hive?", "answerable": False, "tier": "near"},
]


def eval_context(tmp_path: Path) -> EvalContext:
    """A context that nobody else uses."""
    return EvalContext(
        settings=Settings(), cache=tmp_path / "cache", fresh=False, advance=lambda _label, _count, _total: None
    )


async def test_a_small_set_is_answered_and_refused(tmp_path: Path) -> None:
    """Four questions about five documents are told from questions about none; near ones get a rate and no more."""
    folder = question_set(tmp_path / "qa-small", [*QUERIES[:4], *FAR])
    figures = summary(await measure_refusal(load_refusal(folder), eval_context(tmp_path)))

    assert (figures["n"], figures["answerable"], figures["tiers"]) == (7, 4, {"far": 2, "near": 1})
    assert figures["refusal_rate"]["far"] == 1
    assert figures["false_refusal_rate"] <= 0.5
    assert figures["auroc"] == 1
    assert figures["counted_tiers"] == ["far"]
    assert 0 <= figures["ece"] <= 0.5
    assert figures["intervals"]["refusal_rate"]["far"] == (1, 1)
    assert json.loads(json.dumps(figures))["policy"] == "calibrated"
    assert "far                2  100.0% refused" in refusal_text(figures)


async def test_other_policies_are_measured_alike(tmp_path: Path) -> None:
    """The fourth document's cuts need several near passages, which five documents lack; the fifth's refuse none."""
    folder = question_set(tmp_path / "qa-small", [*QUERIES[:4], *FAR])
    strict = summary(await measure_refusal(load_refusal(folder), eval_context(tmp_path), policy="thresholds"))
    lenient = summary(await measure_refusal(load_refusal(folder), eval_context(tmp_path), policy="relevance"))

    assert strict["false_refusal_rate"] == 0.75
    assert lenient["false_refusal_rate"] == 0


def outcome(confidence: float, tier: str = "answerable") -> Outcome:
    """One question's outcome at the usual cut."""
    answerable = tier == "answerable"
    return Outcome(
        id=f"{tier}-{confidence}", tier=tier, answerable=answerable, confidence=confidence, refused=confidence < 0.6
    )


def refusals(*outcomes: Outcome) -> RefusalResult:
    """A run without having run."""
    return RefusalResult(name="s", policy="calibrated", embedder="e", chunks=1, outcomes=outcomes, seconds=0.0)


def test_figures_are_counted_as_a_hand_counts_them() -> None:
    """Rates by tier; AUROC and ECE leave out what is doubtful as long as something sure is left."""
    refusal_result = refusals(
        outcome(0.9), outcome(0.5), outcome(0.7, "far"), outcome(0.1, "far"), outcome(0.99, "near"), outcome(0.2, "mid")
    )
    figures = summary(refusal_result)

    assert figures["false_refusal_rate"] == 0.5
    assert figures["refusal_rate"] == {"far": 0.5, "mid": 1.0, "near": 0.0}
    assert figures["auroc"] == pytest.approx(5 / 6)
    assert figures["auroc_by_tier"] == {"far": 0.75, "mid": 1.0, "near": 0.0}
    assert figures["ece"] == pytest.approx((0.1 + 0.5 + 0.7 + 0.1 + 0.2) / 5)
    only_near = summary(refusals(outcome(0.9), outcome(0.3, "near")))
    assert (only_near["counted_tiers"], only_near["auroc"]) == (["near"], 1.0)


def test_one_kind_of_question_measures_nothing() -> None:
    """Without an uncovered question there is no refusal to measure, and the sentence says what to do."""
    with pytest.raises(BadInput, match="--half"):
        summary(refusals(outcome(0.9), outcome(0.8)))


def test_half_of_the_articles_are_the_book(tmp_path: Path) -> None:
    """Documents go in by title, questions about the others become uncovered, and adversarial ones follow theirs; a
    question that both halves answer in part is asked of neither."""
    documents = [
        {"_id": "b1", "title": "Bread", "text": "Yeast eats sugar."},
        {"_id": "b2", "title": "Bread", "text": "Ovens are hot."},
        {"_id": "g1", "title": "Glass", "text": "Glass is melted sand."},
    ]
    queries = [
        {"_id": "q1", "text": "What does yeast eat?", "gold": [{"doc": "b1"}]},
        {"_id": "q2", "text": "What is hot?", "gold": [{"doc": "b2"}]},
        {"_id": "q3", "text": "What is glass?", "gold": [{"doc": "g1"}]},
        {"_id": "q4", "text": "What is hot or melted?", "gold": [{"doc": "b2"}, {"doc": "g1"}]},
        {"_id": "u1", "text": "Who sold the bread?", "answerable": False, "gold": [{"doc": "b1"}]},
        {"_id": "u2", "text": "Who sold the glass?", "answerable": False, "gold": [{"doc": "g1"}]},
    ]
    dataset = load_refusal(question_set(tmp_path / "qa-x", queries, documents), half=True)

    assert sorted(dataset.books[0].documents.values()) == ["b1", "b2"]
    tiers = {question.id: (question.answerable, question.tier) for question in dataset.questions}
    assert tiers == {
        "q1": (True, "answerable"),
        "q2": (True, "answerable"),
        "q3": (False, "uncovered"),
        "u1": (False, "unanswerable"),
    }


def test_the_book_of_a_refusal_set_is_found_beside_it(tmp_path: Path) -> None:
    """`qa-refusal-x` is about `book-x`; gold may name folders that the book does not have, and a named book wins."""
    queries = [{"_id": "a", "text": "What is it?", "gold": [{"doc": "x/docs/m/l.md"}], "tier": "in-book"}, FAR[0]]
    folder = question_set(tmp_path / "qa-refusal-x", queries, None)
    write_files(tmp_path / "book-x", {"docs/m/l.md": "# L", "history/01/docs/m/l.md": "# Old"})
    write_files(tmp_path / "other", {"k.md": "# K"})

    dataset = load_refusal(folder)
    assert list(dataset.books[0].documents) == ["m/l.md"]
    assert [(question.answerable, question.tier) for question in dataset.questions] == [
        (True, "in-book"),
        (False, "far"),
    ]
    assert list(load_refusal(folder, tmp_path / "other").books[0].documents) == ["k.md"]


def test_foreign_questions_are_uncovered(tmp_path: Path) -> None:
    """Another set's questions, whatever they are there, are none of this book's."""
    dataset = load_refusal(question_set(tmp_path / "qa-small", [*QUERIES[:4]]))
    other_folder = question_set(tmp_path / "qa-other", QUERIES)

    more = with_foreign(dataset, read_labelled(other_folder / "queries.jsonl")).questions[4:]
    assert {(question.answerable, question.tier, question.book_id) for question in more} == {
        (False, "foreign", "qa-small")
    }
    assert len(more) == len(QUERIES)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"_id": "a", "text": "?"}', "line 1: text must have 3 to 1000"),
        ('{"_id": "a", "text": "What?", "answerable": "perhaps"}', "line 1: answerable"),
        ("\n{oops", "line 2: Invalid JSON"),
        ("\n", "holds no question"),
    ],
)
def test_a_bad_line_is_named(content: str, says: str, tmp_path: Path) -> None:
    """Whoever wrote the set can find what to mend."""
    (tmp_path / "queries.jsonl").write_text(content, encoding="utf-8")

    with pytest.raises(SourceError) as caught:
        load_refusal(tmp_path)
    assert says in str(caught.value)


def test_no_book_and_no_folder_are_said(tmp_path: Path) -> None:
    """Each has its own sentence."""
    with pytest.raises(BadInput, match="there is no folder"):
        load_refusal(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="--book PATH"):
        load_refusal(question_set(tmp_path / "qa-x", [{**QUERIES[0], "gold": [{"doc": "l.md"}]}], None))


def test_the_picture_shows_both_charts() -> None:
    """Well-formed, a dot for each bin that holds something, and the cut marked with what it costs."""
    chances, labels = np.array([0.95, 0.9, 0.65, 0.2, 0.05, 0.02]), np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    picture = draw_chart("a < b", chances, labels)

    root = ET.fromstring(picture)
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 4 + 1
    assert "answered at 0.6: 50%, of them 33.3% uncovered" in picture
    assert "a &lt; b" in picture


@pytest.mark.data
def test_real_sets_load() -> None:
    """The sets that this is made for, as their makers describe them."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared question sets are not beside this checkout")

    robolearn = load_refusal(SHARED_DATA / "qa-refusal-robolearn")
    squad = load_refusal(SHARED_DATA / "qa-squad2", half=True)
    assert len(robolearn.questions) == 515
    assert len(robolearn.books[0].documents) == 65
    assert {question.tier for question in robolearn.questions} == {"in-book", "far", "mid", "near"}
    assert sum(question.answerable for question in squad.questions) == 788
    assert {question.tier for question in squad.questions} == {"answerable", "uncovered", "unanswerable"}
