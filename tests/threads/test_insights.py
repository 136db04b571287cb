"""Insights: they equal a recount over everything that owners can export, and say nothing about owners."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from lectern.conversations import insights as module
from lectern.conversations.insights import BookContents, read_insights
from lectern.domain.clock import in_utc
from lectern.domain.errors import BadInput
from lectern.domain.insights import Insights, check_days
from lectern.domain.threads import Beginning, Feedback, FeedbackReason, Turn
from lectern.store import turn_bodies
from lectern.store.turn_history import SqlTurnHistory
from tests.databases import fresh_database
from tests.threads.test_store import Store, new_id, run_of, turn_of

OWNERS = ("key-of-anna", "key-of-anna/reader-17", "key-of-ben")
LESSONS = {str(uuid.uuid4()): f"Lesson {number}" for number in range(4)}
SECTIONS = [(lesson, f"Section {number}") for lesson in LESSONS for number in range(3)]
DAYS = 10


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """The store on each database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield Store(engine)


def contents(book_id: str) -> BookContents:
    """The book that the questions are about."""
    return BookContents(book_id=book_id, titles=LESSONS, sections=frozenset(SECTIONS))


async def insights_of(store: Store, book_id: str, *, days: int = DAYS, texts: bool = False) -> Insights:
    """The insights of a book in this store."""
    return await read_insights(SqlTurnHistory(store.engine), contents(book_id), days=days, texts=texts)


def random_turn(chance: random.Random, moment: datetime) -> Turn:
    """A turn with a reply as a server stores it."""
    refused = chance.random() < 0.4
    sections = [] if refused else chance.choices(SECTIONS, k=chance.randint(1, 4))
    nearest = chance.sample(sorted(LESSONS), k=chance.randint(0, 2)) if refused else []
    question = f"question {chance.randint(0, 9)}"
    reply = {
        "response": "…",
        "confidence_level": "insufficient" if refused else chance.choice(["low", "medium", "high"]),
        "sources": [
            {"parent_doc_id": lesson, "section": section, "page_title": LESSONS[lesson]} for lesson, section in sections
        ],
        "nearest": [{"parent_doc_id": lesson, "title": LESSONS[lesson]} for lesson in nearest],
        "outside_scope": [],
    }
    turn = turn_of(str(uuid.uuid4()), question, refused=refused)
    replied_at = in_utc(moment + timedelta(seconds=2))
    return replace(turn, reply=reply, asked_at=in_utc(moment), replied_at=replied_at)


async def say(store: Store, owner: str, thread_id: str, book_id: str, turn: Turn) -> None:
    """Store a turn."""
    async with store.leases.hold(owner, thread_id, turn.run_id, 5):
        head = await store.threads.head(owner, thread_id)
        await store.log.begin(run_of(turn.run_id, owner, thread_id, turn.question))
        await store.threads.append(
            owner,
            thread_id,
            turn,
            thread_exists=head is not None,
            beginning=Beginning(book_id=book_id, title=turn.question),
            filters={},
            summary=None,
        )


async def random_history(store: Store, chance: random.Random, book_id: str) -> list[tuple[str, str]]:
    """Conversations of several owners, some long, rated, archived or deleted; the owner and id of those that are
    left."""
    threads = []
    for _ in range(chance.randint(1, 4)):
        owner, thread_id = chance.choice(OWNERS), new_id()
        moment = datetime.now(UTC) - timedelta(days=chance.uniform(0, 2 * DAYS))
        count = chance.choice([1, 3, 3, 30])  # in a long one the first turns are archived
        for number in range(1, count + 1):
            moment = min(moment + timedelta(hours=chance.uniform(0, 12)), datetime.now(UTC))
            await say(store, owner, thread_id, book_id, random_turn(chance, moment))
            if chance.random() < 0.5:
                rating = chance.choice(["up", "down", None])
                reason = chance.choice([None, *get_args(FeedbackReason)]) if rating == "down" else None
                feedback = Feedback(rating=rating, reason=reason) if rating else None  # type: ignore[arg-type]  # one of both
                await store.threads.rate(owner, thread_id, chance.randint(1, number), feedback)
        threads.append((owner, thread_id))
    if chance.random() < 0.5:
        await store.threads.archive_idle(in_utc(datetime.now(UTC) - timedelta(days=chance.uniform(0, DAYS))))
    if chance.random() < 0.5:
        await store.threads.delete(*threads.pop())
    return threads


def recount(turns: list[Turn]) -> dict[str, Any]:
    """The same counts, from exported turns, in the plainest way."""
    first_day = (datetime.now(UTC) - timedelta(days=DAYS - 1)).date().isoformat()
    counted = [turn for turn in turns if turn.asked_at[:10] >= first_day]
    answers = [turn for turn in counted if not turn.refused]
    low = [turn for turn in answers if turn.reply["confidence_level"] == "low"]
    refusals = [turn for turn in counted if turn.refused]
    ratings = [turn.feedback for turn in counted if turn.feedback]
    cited = Counter(
        section
        for turn in answers
        for section in {(source["parent_doc_id"], source["section"]) for source in turn.reply["sources"]}
    )
    return {
        "counts": (len(counted), len(answers), len(refusals), len(low)),
        "thumbs": Counter(feedback.rating for feedback in ratings),
        "reasons": Counter(feedback.reason for feedback in ratings if feedback.reason),
        "per_day": Counter((turn.asked_at[:10], turn.refused) for turn in counted),
        "refused": Counter(
            turn.reply["nearest"][0]["parent_doc_id"] if turn.reply["nearest"] else None for turn in refusals
        ),
        "low": Counter(turn.reply["sources"][0]["parent_doc_id"] for turn in low),
        "cited": cited,
        "never": set(SECTIONS) - set(cited),
    }


def as_counts(insights: Insights) -> dict[str, Any]:
    """Insights in the form of the recount."""
    per_day = Counter({(day.day, False): day.answered for day in insights.per_day})
    per_day.update({(day.day, True): day.refused for day in insights.per_day})
    return {
        "counts": (insights.turns, insights.answered, insights.refused, insights.low),
        "thumbs": +Counter({"up": insights.thumbs.up, "down": insights.thumbs.down}),
        "reasons": Counter(insights.thumbs.reasons),
        "per_day": +per_day,
        "refused": Counter({group.parent_doc_id: group.count for group in insights.refused_questions}),
        "low": Counter({group.parent_doc_id: group.count for group in insights.low_questions}),
        "cited": Counter({(row.parent_doc_id, row.section): row.count for row in insights.most_cited}),
        "never": {(row.parent_doc_id, row.section) for row in insights.never_cited},
    }


async def test_insights_equal_a_recount_over_exports(store: Store) -> None:
    """Whatever was asked, rated, archived and deleted: all counts are those of the turns that owners still have."""
    for seed in range(12):
        chance, book_id = random.Random(seed), f"book-{seed}"
        threads = await random_history(store, chance, book_id)
        turns = [turn for owner, thread_id in threads for turn in await store.threads.turns(owner, thread_id)]

        insights = await insights_of(store, book_id)

        assert as_counts(insights) == recount(turns), seed
        assert (len(insights.per_day), insights.never_cited_total) == (DAYS, len(insights.never_cited))
        assert not insights.more


async def test_insights_say_nothing_about_owners(store: Store) -> None:
    """No owner, thread or run is in them, and no text of a reader unless the operator shows it."""
    thread_id, moment = new_id(), datetime.now(UTC)
    turn = random_turn(random.Random(2), moment)
    turn = replace(turn, refused=True, standalone="How do I repair my pump?", question="my pump?")
    await say(store, OWNERS[1], thread_id, "book", turn)
    await store.threads.rate(OWNERS[1], thread_id, 1, Feedback(rating="down", comment="It leaks."))

    hidden = json.dumps(asdict(await insights_of(store, "book")))
    shown = await insights_of(store, "book", texts=True)

    for private in ("anna", "reader", thread_id, turn.run_id, "pump", "leaks", "session", "owner"):
        assert private not in hidden
    assert [group.questions for group in shown.refused_questions] == [("How do I repair my pump?",)]
    assert shown.thumbs.comments == ("It leaks.",)
    assert "anna" not in json.dumps(asdict(shown))


async def test_a_deleted_thread_leaves_no_trace(store: Store) -> None:
    """Insights after it are those before it."""
    before = await insights_of(store, "book")
    thread_id = new_id()
    await say(store, OWNERS[0], thread_id, "book", random_turn(random.Random(1), datetime.now(UTC)))
    await store.threads.rate(OWNERS[0], thread_id, 1, Feedback(rating="up"))
    assert (await insights_of(store, "book")).turns == 1

    await store.threads.delete(OWNERS[0], thread_id)

    assert await insights_of(store, "book") == before


async def test_no_more_turns_are_read_than_allowed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit only the newest count, and the insights say so; other books do not count."""
    monkeypatch.setattr(module, "MAX_TURNS", 3)
    monkeypatch.setattr("lectern.store.turn_history.BATCH_TURNS", 2)
    now = datetime.now(UTC)
    for number in range(3):
        turn = replace(random_turn(random.Random(1), now - timedelta(minutes=5 - number)), refused=True)
        await say(store, OWNERS[0], new_id(), "book", replace(turn, standalone=f"question {number}"))
    await say(store, OWNERS[0], new_id(), "other", random_turn(random.Random(1), now))
    exact = await insights_of(store, "book", texts=True)
    turn = replace(random_turn(random.Random(1), now), refused=True, standalone="question 3")
    await say(store, OWNERS[0], new_id(), "book", turn)

    limited = await insights_of(store, "book", texts=True)

    assert (exact.turns, exact.more, exact.max_turns) == (3, False, 3)
    assert (limited.turns, limited.more) == (3, True)
    questions = [question for group in limited.refused_questions for question in group.questions or ()]
    assert questions == ["question 3", "question 2", "question 1"]


async def test_damaged_replies_are_counted_and_harmless(store: Store) -> None:
    """A turn whose stored reply has another form counts as answered or refused, and no more."""
    for reply in ({}, {"sources": None, "nearest": "x"}, {"sources": [1, {}], "nearest": [{}]}):
        for refused in (False, True):
            turn = replace(random_turn(random.Random(1), datetime.now(UTC)), reply=reply, refused=refused)
            await say(store, OWNERS[0], new_id(), "book", turn)

    insights = await insights_of(store, "book")

    assert (insights.turns, insights.answered, insights.refused, insights.most_cited) == (6, 3, 3, ())
    assert [(group.parent_doc_id, group.count) for group in insights.refused_questions] == [(None, 3)]


async def test_other_work_goes_on_while_insights_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long replies take to parse, the event loop does not wait for them."""
    for _ in range(20):
        await say(store, OWNERS[0], new_id(), "book", random_turn(random.Random(1), datetime.now(UTC)))
    read_object, turned, turns = turn_bodies.read_object, threading.Condition(), 0
    went_on: list[bool] = []

    def read_slowly(body: str) -> Any:
        with turned:
            before = turns
            went_on.append(turned.wait_for(lambda: turns > before, 20))  # for ever, if the loop waits for this
        return read_object(body)

    monkeypatch.setattr(turn_bodies, "read_object", read_slowly)
    reading = asyncio.create_task(insights_of(store, "book"))
    while not reading.done():
        await asyncio.sleep(0.005)
        with turned:
            turns += 1
            turned.notify_all()

    assert (await reading).turns == 20
    assert len(went_on) >= 20
    assert all(went_on)


@pytest.mark.parametrize("days", [0, -1, 367])
def test_a_number_of_days_out_of_range_is_refused(days: int) -> None:
    """The error names the field."""
    with pytest.raises(BadInput) as refusal:
        check_days(days)
    assert refusal.value.field == "days"
