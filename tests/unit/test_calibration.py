"""Calibration: from signals to a probability, and what is shipped, stored and refused."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.confidence.calibration import (
    GENERIC,
    SHIPPED,
    Calibration,
    CalibrationSource,
    Labelled,
    LabelledQuestion,
    calibrate,
    fit,
    read_calibration,
    remove_outdated,
    shipped_calibration,
    stored_calibration,
    to_json,
)
from lectern.confidence.relevance import scale_of
from lectern.confidence.scores import auroc, ece, interval, log_loss
from lectern.confidence.self_questions import covered_questions, far_questions, foreign_questions, mixed_questions
from lectern.confidence.signals import CONFIDENCE_HITS, NAMES, NOTHING, Signals, signals_of
from lectern.domain.books import BookEntry, Manifest
from lectern.domain.chunks import StampedChunk
from lectern.domain.errors import BadInput, ConfigError
from lectern.domain.evidence import Findings
from lectern.domain.scope import ChunkFilter
from tests.conftest import SAMPLE_BOOK
from tests.making import chunk, hit

LOCAL = "local/all-MiniLM-L6-v2-int8/384"
CALIBRATION = Calibration(
    fingerprint="test/tiny/8",
    signals=("best", "covered"),
    weights=(4.0, 2.5),
    intercept=-3.25,
    floor=0.2,
    n=10,
    notes="by hand",
    scale=scale_of(0.2, 0.4, 0.6, n=10),
)


def labelled(count: int = 400, seed: int = 3) -> list[Labelled]:
    """Questions whose chance of being covered is known: it follows `best` and `covered`, and no other signal."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        values = dict.fromkeys(NAMES, 0.0) | {name: draw.random() for name in ("best", "covered", "pairs")}
        chance = 1 / (1 + np.exp(-(-6 + 8 * values["best"] + 4 * values["covered"])))
        rows.append(Labelled(signals=Signals(**values), covered=draw.random() < chance, gold=values["best"]))
    return rows


def test_a_fit_finds_the_weights_that_made_the_labels() -> None:
    """From 4,000 labels drawn with known weights, those weights come back, and a signal without a say gets next to
    none; the intercept is for as many covered as uncovered questions."""
    calibration = fit(labelled(4000), fingerprint="x", notes="", signals=("best", "covered", "pairs"), ridge=0.01)

    best, covered, pairs = calibration.weights
    assert best == pytest.approx(8, rel=0.15)
    assert covered == pytest.approx(4, rel=0.15)
    assert pairs < 0.4
    assert calibration.n == 4000


def test_a_fit_is_the_same_every_time() -> None:
    """Bit by bit, whatever ran before."""
    assert fit(labelled(), fingerprint="x", notes="") == fit(labelled(), fingerprint="x", notes="")


def test_neither_class_outvotes_the_other() -> None:
    """Ten times as many uncovered questions of the same kind change next to nothing."""
    rows = labelled()
    lopsided = [row for row in rows for _ in range(1 if row.covered else 10)]

    balanced, unbalanced = (
        fit(labelled_rows, fingerprint="x", notes="", ridge=1e-6) for labelled_rows in (rows, lopsided)
    )
    assert [unbalanced.of(row.signals) for row in rows] == pytest.approx(
        [balanced.of(row.signals) for row in rows], abs=0.01
    )


def test_no_signal_speaks_against_the_book() -> None:
    """Where chance makes a signal look harmful it counts nothing, and the others are fitted without it."""
    rows = [
        replace(row, signals=replace(row.signals, pairs=0.0 if row.covered else 1.0, together=row.signals.best))
        for row in labelled()
    ]
    calibration = fit(rows, fingerprint="x", notes="")

    weights = dict(zip(calibration.signals, calibration.weights, strict=True))
    assert weights["pairs"] == 0
    assert min(calibration.weights) >= 0
    assert weights["best"] + weights["together"] > 3


def test_perfectly_told_apart_questions_keep_finite_weights() -> None:
    """Separable classes would drive weights to infinity; the ridge holds them."""
    rows = [
        Labelled(signals=replace(NOTHING, best=0.9 if covered else 0.1), covered=covered)
        for covered in (True, False)
        for _ in range(20)
    ]
    calibration = fit(rows, fingerprint="x", notes="")

    assert all(np.isfinite(calibration.weights))
    assert calibration.of(rows[0].signals) > 0.9
    assert calibration.of(rows[-1].signals) < 0.1


def test_a_prior_holds_where_there_is_little_to_learn() -> None:
    """Ten questions move parameters a little, a thousand move them to what the questions say."""
    prior = replace(CALIBRATION, weights=(1.0, 9.0))

    def distance(count: int) -> float:
        calibration = fit(labelled(count), fingerprint="x", notes="", signals=prior.signals, prior=prior, ridge=10)
        return abs(calibration.weights[0] - 8) + abs(calibration.weights[1] - 4)

    assert distance(4000) < 2 < distance(12)


def test_the_floor_is_what_hardly_any_gold_lies_below() -> None:
    """One in five hundred passages that answer lies below it; without any known, it is the prior's."""
    rows = [
        Labelled(signals=replace(NOTHING, best=n / 2000), covered=n % 2 == 0, gold=0.3 + n / 4000) for n in range(2000)
    ]
    calibration = fit(rows, fingerprint="x", notes="")
    without = fit([replace(row, gold=None) for row in rows], fingerprint="x", notes="", prior=CALIBRATION)

    assert sum(row.gold < calibration.floor for row in rows if row.covered and row.gold) == 2
    assert without.floor == CALIBRATION.floor


def test_one_kind_of_question_is_not_enough() -> None:
    """Said before anything is fitted."""
    with pytest.raises(BadInput, match="only one of the two"):
        fit([row for row in labelled() if row.covered], fingerprint="x", notes="")


def test_json_keeps_every_digit(tmp_path: Path) -> None:
    """What is written is read back as it was."""
    exact = replace(CALIBRATION, weights=(1 / 3, 2.0**0.5), intercept=-0.1 - 0.2)
    (tmp_path / "c.json").write_text(to_json(exact), encoding="utf-8")

    assert read_calibration(tmp_path / "c.json") == exact


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"signals": ["best", "luck"]}, "there is no signal 'luck'"),
        ({"signals": ["best", "best"]}, "each once"),
        ({"weights": [1.0]}, "2 signals need as many weights, not 1"),
        ({"weights": [1.0, "heavy"]}, "weights"),
        ({"intercept": float("inf")}, "intercept"),
        ({"zero": 1.0}, "zero must be below one"),
        ({"floor": 1.5}, "floor must be 0 to 1"),
        ({"notes": None}, "notes"),
        ({"fingerprnt": "x"}, "fingerprnt"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_fault(change: dict, says: str, tmp_path: Path) -> None:
    """Nobody is answered by half a calibration, and the sentence says which file, what is wrong and what to do."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps({**json.loads(to_json(CALIBRATION)), **change}), encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        read_calibration(file)
    assert str(file) in str(caught.value)
    assert says in str(caught.value)
    assert "lectern calibrate" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_what_is_no_json_is_refused(content: bytes, tmp_path: Path) -> None:
    """A torn file is a sentence, not a trace."""
    (tmp_path / "c.json").write_bytes(content)

    with pytest.raises(ConfigError, match="is no calibration"):
        read_calibration(tmp_path / "c.json")


def test_shipped_parameters_load_and_name_their_embedders() -> None:
    """Each file is valid; the local one is fitted, the others say that they are not, and anything else gets words."""
    names = {file.stem: read_calibration(file) for file in SHIPPED.glob("*.json")}

    assert set(names) == {"local", "openai", "cohere", "generic"}
    assert shipped_calibration(LOCAL) == names["local"]
    assert shipped_calibration(LOCAL).n > 5000
    for name in ("openai", "cohere"):
        assert "starting point" in names[name].notes
        assert shipped_calibration(names[name].fingerprint) == names[name]
    assert shipped_calibration("acme/new-model/64") == names["generic"]
    assert names["generic"].fingerprint == GENERIC
    assert not {"best", "joint"} & set(names["generic"].signals)


def test_a_books_own_parameters_are_used_while_its_embedder_is_the_same(tmp_path: Path) -> None:
    """After a change of embedder they are not about this book's cosines any more."""
    (tmp_path / "book.json").write_text(to_json(CALIBRATION), encoding="utf-8")

    assert stored_calibration(tmp_path, "book", "test/tiny/8") == CALIBRATION
    assert stored_calibration(tmp_path, "book", "test/other/8") is None
    assert stored_calibration(tmp_path, "other", "test/tiny/8") is None


def test_parameters_of_another_version_are_left_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file whose signals this version does not take is no reason to answer nothing: the shipped ones are used, and
    the log says what to do. What is damaged otherwise is still an error."""
    file = tmp_path / "book.json"
    file.write_text(to_json(CALIBRATION).replace('"best"', '"margin"'), encoding="utf-8")

    assert stored_calibration(tmp_path, "book", "test/tiny/8") is None
    assert "lectern calibrate" in caplog.text
    file.write_text(to_json(CALIBRATION).replace('"floor"', '"flaw"'), encoding="utf-8")
    with pytest.raises(ConfigError, match="is no calibration"):
        stored_calibration(tmp_path, "book", "test/tiny/8")


def test_only_what_no_version_of_today_reads_is_cleared_away(tmp_path: Path) -> None:
    """Another embedder's parameters wait for it; those by signals that are gone would be warned of for ever."""
    file = tmp_path / "book.json"
    remove_outdated(tmp_path, "book")
    file.write_text(to_json(CALIBRATION), encoding="utf-8")
    remove_outdated(tmp_path, "book")
    assert stored_calibration(tmp_path, "book", "test/tiny/8") == CALIBRATION

    file.write_text(to_json(CALIBRATION).replace('"best"', '"margin"'), encoding="utf-8")
    remove_outdated(tmp_path, "book")
    assert not file.exists()


def test_cosines_are_read_on_the_calibrations_scale() -> None:
    """A model whose cosines all lie between 0.6 and 0.9 is stretched to 0…1."""
    stretched = signals_of("node", [hit(chunk("A node."), 0.75), hit(chunk("Else."), 0.5)], zero=0.6, one=0.9)

    assert stretched.best == pytest.approx(0.5)
    assert stretched.joint == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("People with a gripper.", 1.0),
        ("A gripper.", 1 / 1.3),
        ("People.", 0.3 / 1.3),  # everybody has them
        ("What about a griper?", 0.7 / 1.3),  # misspelt
        ("Many grippers!", 1 / 1.3),
        ("A microgripper.", 0.0),
        ("Nothing of that sort.", 0.0),
    ],
)
def test_covered_weighs_words_by_how_much_they_tell(text: str, covered: float) -> None:
    """A rare word counts 1, the commonest 0.3, a misspelt one 0.7 of its weight, question words not at all."""
    signals = signals_of("How do people use the gripper?", [hit(chunk(text, trail=()), 0.5)])

    assert signals.covered == pytest.approx(covered)


def test_words_far_apart_do_not_stand_together() -> None:
    """One passage holds both words in one sentence, the other a hundred words apart."""
    near = signals_of("gripper torque", [hit(chunk("The gripper has a torque of two.", trail=()), 0.5)])
    apart = signals_of("gripper torque", [hit(chunk(f"gripper {'and then ' * 50} torque", trail=()), 0.5)])

    assert (near.covered, near.together) == (1, 1)
    assert (apart.covered, apart.together) == (1, 0.5)


@given(
    st.text(max_size=80),
    st.lists(st.tuples(st.text(max_size=80), st.floats(0, 1)), max_size=14),
)
def test_signals_are_bounded_and_taken_from_the_first_hits_only(
    question: str, texts: Sequence[tuple[str, float]]
) -> None:
    """Whatever is asked and found: each signal is 0…1, and hits behind the field change nothing."""
    hits = [hit(chunk(f"{text} {number}"), value) for number, (text, value) in enumerate(texts)]
    signals = signals_of(question, hits)

    assert all(0 <= value <= 1 + 1e-12 for value in astuple(signals))
    assert signals == signals_of(question, hits[:CONFIDENCE_HITS])


def test_scores_against_hand_counted_values() -> None:
    """Ties count half; a bin's gap is weighed by its size; certainty costs a lot where it is wrong."""
    chances, labels = np.array([0.9, 0.8, 0.5, 0.5, 0.1]), np.array([1.0, 1.0, 1.0, 0.0, 0.0])

    assert auroc(chances, labels) == pytest.approx(5.5 / 6)
    assert ece(np.array([0.95, 0.95, 0.05, 0.05]), np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.5 * 0.45 + 0.025)
    assert log_loss(np.array([1.0, 0.0]), np.array([1.0, 0.0])) < 0.001
    assert log_loss(np.array([0.0]), np.array([1.0])) > 4
    low, high = interval(auroc, chances.tolist(), labels.tolist())
    assert low <= auroc(chances, labels) <= high


def test_self_questions_keep_only_part_of_the_books_wording() -> None:
    """No question is a sentence of the book as it stands, and most of it is; foreign ones are none of the book's."""
    texts = [f"The gripper number {n} closes its two steel fingers around a heavy brass cylinder." for n in range(40)]
    chunks = [chunk(text, lesson_title="Grippers", section_title="Closing steel fingers") for text in texts]

    questions = covered_questions(chunks)
    assert len(questions) == 40
    assert all(question.covered for question in questions)
    words = {word.lower() for text in texts for word in text.rstrip(".").split()} | {"grippers", "closing"}
    for question in questions:
        question_words = [word.lower() for word in question.text.split()]
        shared = sum(word in words for word in question_words) / len(question_words)
        assert 0.4 <= shared < 1
    assert questions == covered_questions(chunks)
    assert [question.covered for question in foreign_questions(chunks, 7)] == [False] * 7


def test_mixed_questions_hold_words_of_the_book_and_are_not_about_it() -> None:
    """A far question with two of the book's words is still uncovered; without a book there is nothing to put in."""
    questions = mixed_questions([chunk("Quaternions interpolate orientations smoothly.")])

    assert len(questions) == len(far_questions())
    assert not any(question.covered for question in questions)
    book_words = {"Quaternions", "interpolate", "orientations", "smoothly"}
    assert all(len(book_words & set(question.text.split())) in (1, 2) for question in questions)
    assert mixed_questions([]) == []


def test_far_questions_are_many_and_different() -> None:
    """At least 150, each once, each a question that a search takes."""
    questions = far_questions()

    assert len(questions) == len(set(questions)) >= 150
    assert all(3 <= len(text) <= 1000 for text in questions)


class Collections:
    """A library of one book, in which what a question finds is told by the question."""

    async def search(self, text: str, *, book: str | None = None, limit: int = 5) -> Findings:
        """One hit; `near` in the question makes it similar."""
        found_hits = (hit(chunk("All about something else."), 0.8 if "near" in text else 0.1),)
        return Findings(
            query=text,
            mode="hybrid",
            where=ChunkFilter(book_id="b"),
            language="en",
            hits=found_hits,
            vector=(),
            total_found=1,
            query_time_ms=0.0,
        )

    async def chunks(self, book: str | None = None) -> list[StampedChunk]:
        """None is asked for."""
        raise AssertionError(book)

    async def books(self) -> tuple[BookEntry, ...]:
        """The one."""
        return (await self.book(),)

    async def book(self, book: str | None = None) -> BookEntry:
        """The one."""
        return BookEntry(
            manifest=Manifest(book_id="b", title="B"),
            source="",
            fingerprint=LOCAL,
            collection_name="c",
            total_chunks=1,
            last_full_ingest=None,
            last_incremental_update=None,
        )


def source_of(lectern: Lectern) -> CalibrationSource:
    """What calibrating reads of an open Lectern."""
    library = lectern.app.library
    return CalibrationSource(search=lectern.search, chunks=library.chunks, books=library.books, book=library.book)


@pytest.mark.parametrize("fooled", [False, True])
async def test_only_what_does_better_on_the_other_half_is_stored(fooled: bool, tmp_path: Path) -> None:
    """Labels that follow the similarity in both halves are learnt; labels that turn round in the half that was not
    fitted on show that nothing was learnt, and nothing is stored."""
    texts = [f"{'near' if number % 2 else 'far'} question {number}" for number in range(200)]
    questions = [
        LabelledQuestion(text=text, answerable=("near" in text) != (fooled and zlib.crc32(text.encode()) % 2 == 1))
        for text in texts
    ]
    report = await calibrate(Collections(), tmp_path, questions=questions)

    assert (report.after.log_loss < report.before.log_loss) != fooled
    assert (report.stored is None) == fooled
    assert (report.now == report.was) == fooled
    assert (stored_calibration(tmp_path, "b", LOCAL) is None) == fooled


async def test_calibrating_a_real_book_from_itself(tmp_path: Path) -> None:
    """Without a labelled question: figures on a half that was not fitted on, and a file only where they are better;
    a second run comes to the same."""
    folder = tmp_path / "calibrations"
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(SAMPLE_BOOK, book="sample")
        report = await calibrate(source_of(lectern), folder, book="sample")
        again = await calibrate(source_of(lectern), folder)

    assert report.source == "book"
    assert (report.covered, report.uncovered) == (200, 2 * len(far_questions()))
    assert report.now.floor == report.was.floor
    assert report.after.auroc > 0.9
    assert report.after.refusal_rate > 0.85
    assert again.now == report.now
    if report.after.log_loss < report.before.log_loss:
        assert stored_calibration(folder, "sample", LOCAL) == report.now
    else:
        assert report.stored is None
        assert list(folder.glob("*")) == []


async def test_calibrating_from_labelled_questions(tmp_path: Path) -> None:
    """Labels win over the book's own headings; where nobody wrote an uncovered question, far ones are asked."""
    question_texts = [
        f"What does the {word} do?" for word in "publisher subscriber topic node service action bag".split()
    ]
    question_texts += [f"How is a {word} set up?" for word in "workspace simulator sensor gripper camera timer".split()]
    questions = [LabelledQuestion(text=text, answerable=True) for text in question_texts]
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(SAMPLE_BOOK, book="sample")
        report = await calibrate(source_of(lectern), tmp_path / "c", questions=questions)
        with pytest.raises(BadInput, match="10 questions or more that the book covers, not 3"):
            await calibrate(source_of(lectern), tmp_path / "c", questions=questions[:3])

    assert (report.source, report.covered, report.uncovered) == ("questions", 13, len(far_questions()))
    assert asdict(report)["was"]["fingerprint"] == LOCAL
