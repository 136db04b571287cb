"""Measuring answers: what counts as said, as quoted and as found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.app.settings import Settings
from lectern.domain.errors import BadInput, SourceError
from lectern.evals.answers import (
    AnswerQuestion,
    answers_text,
    is_verbatim,
    load_answers,
    measure_answers,
    says,
    score_reply,
    summary,
)
from lectern.evals.runner import EvalContext
from tests.evals.making import DOCUMENTS, question_set, write_files

HONEY = "A hive of bees makes honey from the nectar of flowers."
QUERIES = [
    {"_id": "q1", "text": "What do bees make honey from?", "answers": ["nectar of flowers"], "meta": {"type": "fact"}},
    {"_id": "q2", "text": "What pulls the sea?", "answers": ["The Moon"], "meta": {"type": "fact"}},
    {"_id": "q3", "text": "What does yeast eat?", "answers": ["salt", "pepper"], "meta": {"type": "wrong"}},
    {"_id": "q4", "text": "And twice a day?", "answers": ["tides"], "meta": {"standalone": "What rises twice a day?"}},
    {"_id": "q5", "text": "Who painted the Mona Lisa?", "answerable": False, "answers": []},
    {"_id": "q6", "text": "What is glass?", "answers": []},
]


def eval_context(tmp_path: Path) -> EvalContext:
    """A place to work."""
    return EvalContext(settings=Settings(), cache=tmp_path / "cache", fresh=False, advance=lambda *_: None)


def test_what_counts_as_said() -> None:
    """Case, articles, punctuation and markup do not matter; parts of words and words apart do."""
    assert says("It was **the Moon**, of course.", ["moon"])
    assert says("about 30–60% of them", ["30-60%"])
    assert not says("It was moonlight.", ["moon"])
    assert not says("nectar of many flowers", ["nectar of flowers"])
    assert not says("anything", ["", "the"])


def test_what_counts_as_word_for_word() -> None:
    """White space, fences, bullets and the targets of links do not matter; one other word does."""
    passage = "See [the bees](bees.md):\n\n- they make\n  honey\n\n```sh\nbuzz  --loud\n```"

    assert is_verbatim("See the bees:", passage)
    assert is_verbatim("- they make honey", passage)
    assert is_verbatim("```sh\nbuzz --loud\n```", passage)
    assert not is_verbatim("they made honey", passage)


def test_a_reply_is_taken_apart() -> None:
    """A later sentence answers without the first; what no passage has is neither verbatim nor resolved."""
    question = AnswerQuestion(id="q", text="What do bees make?", answers=("honey",))
    reply = [("Bees are insects. [1]", (HONEY,)), (f"{HONEY} [1]", (HONEY,)), ("Bees buzz. [2]", ("Elsewhere.",))]
    score = score_reply(question, reply, {HONEY})

    assert (score.answered, score.in_first, score.refused) == (True, False, False)
    assert (score.sentences, score.verbatim, score.resolved) == (3, 1, 2)
    assert score.words == 3 + 11 + 2
    assert score_reply(question, [], {HONEY}).refused


async def test_a_set_is_asked_with_and_without_the_gate(tmp_path: Path) -> None:
    """Known answers are found, unknown ones are not, and every sentence is the book's; the table says so."""
    questions = load_answers(question_set(tmp_path / "qa-small", QUERIES, DOCUMENTS))
    alone = summary(await measure_answers(questions, eval_context(tmp_path), gate=False))
    gated = summary(await measure_answers(questions, eval_context(tmp_path)))

    assert alone["n"] == gated["n"] == 4
    assert alone["answered"] == 0.75
    assert gated["answered"] <= 1 - gated["refused"]
    for figures in (alone, gated):
        assert figures["verbatim"] == figures["resolved"] == 1
        low, high = figures["intervals"]["answered"]
        assert low <= figures["answered"] <= high
        assert figures["kinds"]["wrong"]["answered"] == 0
    assert "75.0%" in answers_text(alone)


def test_the_book_of_a_set(tmp_path: Path) -> None:
    """`docs` in the set is its book, else the corpus; another folder may be named, and without any there is advice."""
    folder = question_set(tmp_path / "qa-small", QUERIES, DOCUMENTS)
    assert len(load_answers(folder).book.documents) == len(DOCUMENTS)
    write_files(folder, {"docs/bees.md": f"# Bees\n\n{HONEY}"})
    assert set(load_answers(folder).book.documents) == {"bees.md"}
    other_book = write_files(tmp_path / "other", {"a.md": "# A\n", "b.md": "# B\n"})
    assert set(load_answers(folder, other_book).book.documents) == {"a.md", "b.md"}
    with pytest.raises(SourceError, match="--book"):
        load_answers(question_set(tmp_path / "qa-bare", QUERIES, None))
    with pytest.raises(BadInput, match="queries"):
        load_answers(tmp_path / "nowhere")


def test_halves_and_samples(tmp_path: Path) -> None:
    """Articles are never cut, halves share no question and lose none, and a seed draws the same sample again."""
    queries = [
        {"_id": f"q{number}", "text": "What is it?", "answers": ["it"], "meta": {"article": f"a{number // 3}"}}
        for number in range(12)
    ]
    questions = load_answers(question_set(tmp_path / "qa-halves", queries, DOCUMENTS))
    fitted, other_half = questions.half("fitted").questions, questions.half("other").questions

    assert {question.article for question in fitted} == {"a0", "a2"}
    assert {question.article for question in other_half} == {"a1", "a3"}
    assert len(fitted) + len(other_half) == 12
    assert questions.sample(5, 1).questions == questions.sample(5, 1).questions != questions.sample(5, 2).questions
    assert questions.sample(99, 1).questions == questions.questions
