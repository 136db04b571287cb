"""Fusion: one order from two scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.domain.evidence import Candidate
from lectern.retrieval.search import rank
from tests.making import chunk


def candidate(text: str, cosine: float, bm25: float, lesson: int = 1) -> Candidate:
    """A candidate with these raw scores."""
    from tests.making import place

    new_chunk = chunk(text, place(lesson=lesson))
    return Candidate(id=new_chunk.id, content_hash=new_chunk.content_hash, cosine=cosine, bm25=bm25)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 30)), max_size=12),
    st.sampled_from(["hybrid", "dense", "lexical"]),
)
def test_scores_are_within_bounds_and_ordered(scores: list[tuple[float, float]], mode: str) -> None:
    """Every score is 0…1, whatever the raw ones were, and results come best first."""
    ranked = rank([candidate(f"text {n}", *pair) for n, pair in enumerate(scores)], mode)

    assert all(
        0 <= value <= 1
        for ranked_hit in ranked
        for value in (ranked_hit.score, ranked_hit.similarity, ranked_hit.lexical)
    )
    assert [ranked_hit.score for ranked_hit in ranked] == sorted(
        (ranked_hit.score for ranked_hit in ranked), reverse=True
    )


def test_one_text_is_one_result_the_best() -> None:
    """A text that stands in two lessons is shown once, where it scored best."""
    ranked = rank([candidate("the same text", 0.3, 1, 1), candidate("the same text", 0.6, 1, 2)], "hybrid")

    assert len(ranked) == 1
    assert ranked[0].similarity == pytest.approx(0.6)


def test_lexical_search_shows_only_what_shares_a_word() -> None:
    """Without a common word there is no lexical result."""
    assert [
        ranked_hit.candidate.bm25
        for ranked_hit in rank([candidate("a b", 0.9, 0), candidate("c d", 0.1, 2)], "lexical")
    ] == [2]


def test_equal_scores_are_ordered_by_id() -> None:
    """The order never depends on the order of arrival."""
    candidates = [candidate(f"text {n}", 0.5, 1) for n in range(6)]

    assert rank(candidates, "hybrid") == rank(candidates[::-1], "hybrid")
