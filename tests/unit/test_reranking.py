"""The search mode `reranked`: how likely a result answers changes the order of the first ones."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.evidence import Hit
from lectern.domain.scope import SearchMode, SearchQuery
from lectern.retrieval.search import ANSWER_WEIGHT, RERANKED, reranked
from tests.making import chunk, hit

COUNT = 28  # results on all pages together


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-20, 20)), max_size=RERANKED + 8))
async def test_scores_stay_ordered_and_within_bounds(values: list[tuple[float, float]]) -> None:
    """Best first, ranks without gaps, and none that the network did not read above those that it did."""
    values.sort(reverse=True)
    hits = [
        replace(hit(chunk(f"text {rank}"), rank=rank), score=score) for rank, (score, _) in enumerate(values, start=1)
    ]
    read: list[Hit] = []

    async def answer_odds(_: str, first: Sequence[Hit]) -> list[float]:
        read.extend(first)
        return [odds for _, odds in values[: len(first)]]

    found = await reranked("text", hits, answer_odds)

    assert read == hits[:RERANKED]
    assert [one.rank for one in found] == list(range(1, len(hits) + 1))
    assert all(0 <= one.score <= 1 for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.chunk.id for one in found[:RERANKED]} == {one.chunk.id for one in hits[:RERANKED]}


async def test_what_answers_comes_first() -> None:
    """Though its words and meaning are a little less near."""
    near, answer = replace(hit(chunk("near")), score=0.6), replace(hit(chunk("answer"), rank=2), score=0.5)

    async def answer_odds(_: str, first: Sequence[Hit]) -> list[float]:
        return [8.0 if one.chunk.text == "answer" else -8.0 for one in first]

    found = await reranked("text", [near, answer], answer_odds)

    assert [one.chunk.text for one in found] == ["answer", "near"]
    assert found[0].score < (0.5 + ANSWER_WEIGHT) / (1 + ANSWER_WEIGHT)


async def test_pages_of_the_mode_fit_together(sample_home: Path, tmp_path: Path) -> None:
    """The first results change places, whatever page is asked for; the others are those of a hybrid search."""
    shutil.copytree(sample_home, tmp_path / "home")
    text = "How often should a controller loop run?"
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:

        async def found(mode: SearchMode, limit: int) -> list[str]:
            queries = [
                SearchQuery(text=text, limit=limit, offset=offset, mode=mode) for offset in range(0, COUNT, limit)
            ]
            return [hit.chunk.id for query in queries for hit in (await lectern.app.search(query)).hits][:COUNT]

        hybrid, whole, pages = await found("hybrid", 15), await found("reranked", 15), await found("reranked", 7)

    assert pages == whole
    assert whole[:RERANKED] != hybrid[:RERANKED]
    assert set(whole[:RERANKED]) == set(hybrid[:RERANKED])
    assert whole[RERANKED:] == hybrid[RERANKED:]
