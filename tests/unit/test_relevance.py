"""Relevance: one scale for the cosines of every embedder, and what a book's own questions make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern import Settings, open_lectern
from lectern.confidence.calibration import (
    SHIPPED,
    LabelledQuestion,
    calibrate,
    read_calibration,
    shipped_calibration,
    stored_calibration,
)
from lectern.confidence.policies import policy_for
from lectern.confidence.relevance import UNMEASURED, RelevanceScale, misfit, scale_from, scale_of
from tests.conftest import SAMPLE_BOOK
from tests.unit.test_calibration import LOCAL, Collections, source_of

GOLDEN = SAMPLE_BOOK.parent / "golden" / "physical-ai-robotics" / "queries.jsonl"
SHIPPED_SCALES = [read_calibration(file).scale for file in sorted(SHIPPED.glob("*.json"))]
cosines = st.floats(-0.2, 1)


@given(scale=st.sampled_from([*SHIPPED_SCALES, UNMEASURED]), first=cosines, second=cosines)
def test_a_nearer_passage_never_has_a_lower_relevance(scale: RelevanceScale, first: float, second: float) -> None:
    """Whatever the embedder: relevance follows the cosine, within 0 and 1."""
    low, high = sorted((first, second))
    assert 0 <= scale.of(low) <= scale.of(high) <= 1


def test_the_points_of_a_scale_mean_what_they_say() -> None:
    """0.30 is the floor, 0.70 the 5th percentile, 0.85 the median; in between it is linear."""
    scale = scale_of(0.1, 0.3, 0.5, n=100)

    assert [scale.of(cosine) for cosine in (0.0, 0.1, 0.3, 0.5, 1.0)] == [0.0, 0.3, 0.7, 0.85, 1.0]
    assert scale.of(0.2) == pytest.approx(0.5)
    assert scale.of(-0.5) == 0.0


def test_a_fitted_scale_keeps_95_of_100() -> None:
    """Of 1,000 covered questions, 950 have a best passage of 0.70 or more, and the median has 0.85."""
    nearest = [0.2 + number / 2000 for number in range(1000)]
    scale = scale_from(nearest, floor=0.1, prior=UNMEASURED)

    assert sum(scale.of(cosine) >= 0.7 for cosine in nearest) == pytest.approx(950, abs=2)
    assert scale.of(0.45) == pytest.approx(0.85, abs=0.01)
    assert misfit(scale, nearest) < 0.01 < misfit(UNMEASURED, nearest)


@given(nearest=st.lists(st.floats(0, 1), min_size=1, max_size=40), floor=st.none() | st.floats(0, 1))
def test_any_list_gives_a_scale_that_rises(nearest: list[float], floor: float | None) -> None:
    """Equal cosines, a floor above all of them, or a single question: the scale still rises from point to point."""
    scale = scale_from(nearest, floor=floor, prior=UNMEASURED)
    values = [cosine for cosine, _ in scale.points]
    assert values == sorted(set(values))


@pytest.mark.parametrize("points", [((0.0, 0.0),), ((0.0, 0.0), (0.5, 0.7), (0.4, 0.8), (1.0, 1.0))])
def test_a_scale_that_falls_or_ends_early_is_refused(points: tuple[tuple[float, float], ...]) -> None:
    """A damaged file cannot turn the order of passages round."""
    with pytest.raises(ValueError, match="relevance"):
        RelevanceScale(points=points, n=1)


def test_only_the_local_scale_says_that_it_was_measured() -> None:
    """The others are starting points, and their files say so with n = 0. In all of them the floor has 0.30."""
    scales = {file.stem: read_calibration(file) for file in SHIPPED.glob("*.json")}

    assert {name for name, calibration in scales.items() if calibration.scale.n} == {"local"}
    for name in ("local", "openai", "cohere"):
        assert scales[name].scale.of(scales[name].floor) == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["calibrated", "thresholds", "relevance"])
def test_every_policy_has_the_embedders_scale(name: str) -> None:
    """A passage that a model reads by itself gets the same relevance as one from a search."""
    assert policy_for(name, LOCAL).relevance(0.4) == shipped_calibration(LOCAL).scale.of(0.4)


def test_a_calibration_of_an_earlier_version_gets_the_embedders_scale(tmp_path: Path) -> None:
    """A stored file without a scale is read as before, and thresholds work."""
    fields = json.loads((SHIPPED / "local.json").read_text(encoding="utf-8"))
    del fields["scale"]
    (tmp_path / "b.json").write_text(json.dumps(fields), encoding="utf-8")

    stored = stored_calibration(tmp_path, "b", LOCAL)
    assert stored is not None
    assert stored.scale == shipped_calibration(LOCAL).scale


async def test_calibrating_measures_the_scale_of_a_book(tmp_path: Path) -> None:
    """Where all covered questions have a best passage of 0.8, that cosine becomes the 5th percentile and the median,
    drawn a little to the shipped scale; a second run changes nothing."""
    questions = [
        LabelledQuestion(text=f"{'near' if number % 2 else 'far'} question {number}", answerable=number % 2 == 1)
        for number in range(200)
    ]
    report = await calibrate(Collections(), tmp_path, questions=questions)
    again = await calibrate(Collections(), tmp_path, questions=questions)

    [_, _, (covered, _), (middle, _), _] = report.now.scale.points
    assert report.now.scale.n == 100
    assert covered == pytest.approx(0.8, abs=0.06)
    assert middle == pytest.approx(0.8, abs=0.03)
    assert again.now == report.now
    assert again.stored is None


async def test_sentences_made_of_the_book_do_not_move_a_measured_scale(tmp_path: Path) -> None:
    """Readers' questions are nearer to their answers or farther than sentences with swapped words; the local scale was
    measured on readers' questions and stays."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(SAMPLE_BOOK, book="sample")
        report = await calibrate(source_of(lectern), tmp_path / "c", book="sample")

    assert report.now.scale == shipped_calibration(LOCAL).scale


async def test_on_the_sample_book_a_threshold_of_0_7_keeps_what_answers(sample_home: Path) -> None:
    """With the local embedder, at least 9 in 10 answerable golden questions have a passage at 0.7, and a search with
    that threshold returns passages at or above it; their cosines are lower. Of a question about something else it
    leaves nothing."""
    lines = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    texts = [line["text"] for line in lines if line["answerable"]]
    async with open_lectern(Settings(home=sample_home)) as lectern:
        best = [max(hit.relevance for hit in (await lectern.search(text, limit=10)).hits) for text in texts]
        near = await lectern.search(texts[0], limit=20, similarity_threshold=0.7)
        foreign = [await lectern.search("How do I cook rice?", similarity_threshold=least) for least in (0.0, 0.7)]

    assert sum(relevance >= 0.7 for relevance in best) >= 0.9 * len(texts)
    assert all(hit.relevance >= 0.7 for hit in near.hits)
    assert near.hits
    assert foreign[0].total_found > foreign[1].total_found == 0
    assert min(hit.similarity for hit in near.hits) < 0.7
