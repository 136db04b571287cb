"""Threads on both databases: one contract."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.app.threads import OwnThreads
from lectern.conversations.export import as_markdown
from lectern.domain.errors import BadInput, Busy, Conflict, UnknownThread
from lectern.domain.replies import Exchange, LookUp
from lectern.domain.threads import LIVE_MESSAGES, Beginning, Feedback, Run, ThreadEdit, Turn
from lectern.store.leases import Leases
from lectern.store.tables import archived_messages, messages, turn_log, turns
from lectern.store.threads import SqlThreads
from lectern.store.turn_log import SqlTurnLog
from tests.databases import fresh_database

FIRST_OWNER, SECOND_OWNER = "mine", "yours"
TABLES = (
    "conversation_threads",
    "messages",
    "archived_messages",
    "turns",
    "archived_turns",
    "turn_feedback",
    "turn_log",
)


class Store:
    """The three parts on one database, and turns to put in."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.leases = Leases(engine)
        self.threads = SqlThreads(engine, self.leases)
        self.log = SqlTurnLog(engine)

    async def say(self, owner: str, thread_id: str, question: str, *, refused: bool = False, at: int = 0) -> str:
        """One turn, as `converse` keeps it; its run's id."""
        run_id = str(uuid.uuid4())
        async with self.leases.hold(owner, thread_id, run_id, 5):
            head = await self.threads.head(owner, thread_id)
            await self.log.begin(run_of(run_id, owner, thread_id, question))
            await self.threads.append(
                owner,
                thread_id,
                turn_of(run_id, question, refused=refused, at=at),
                thread_exists=head is not None,
                beginning=Beginning(book_id="book", title=question, metadata={"tags": ["ros2"]}),
                filters={"hardware_tier_filter": 2},
                summary=None,
            )
        return run_id


def run_of(run_id: str, owner: str, thread_id: str, question: str = "?") -> Run:
    """An attempt that begins."""
    return Run(
        run_id=run_id,
        owner=owner,
        thread_id=thread_id,
        question=question,
        state="running",
        error=None,
        digest="",
        begun_at=moment(0),
    )


def turn_of(run_id: str, question: str, *, refused: bool = False, at: int = 0) -> Turn:
    """A question and its reply."""
    look_up = LookUp(
        tool_name="retrieve_documentation", query=question, results_count=3, avg_similarity=0.5, timestamp=moment(at)
    )
    return Turn(
        run_id=run_id,
        question=question,
        standalone=f"{question} (alone)",
        answer=f"answer to {question}",
        refused=refused,
        confidence=0.75,
        asked_at=moment(at),
        replied_at=moment(at + 1),
        reply={"response": f"answer to {question}", "sources": []},
        look_ups=(look_up,),
    )


def moment(second: int) -> str:
    """Moments that sort."""
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


def new_id() -> str:
    """A thread's id."""
    return str(uuid.uuid4())


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """The store on each database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield Store(engine)


async def test_a_turn_is_two_messages_in_order(store: Store) -> None:
    """A turn reads back as a user's and an assistant's message, with what was looked up, and a head that counts it."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "What is URDF?")
    await store.say(FIRST_OWNER, thread_id, "And SDF?", at=5)

    thread = await store.threads.thread(FIRST_OWNER, thread_id)

    assert [(message.seq, message.role) for message in thread.messages] == [
        (1, "user"),
        (2, "assistant"),
        (3, "user"),
        (4, "assistant"),
    ]
    assert [message.content for message in thread.messages][:2] == ["What is URDF?", "answer to What is URDF?"]
    assert [message.confidence for message in thread.messages] == [None, 0.75, None, 0.75]
    assert [retrieval.query for retrieval in thread.retrieval_history] == ["What is URDF?", "And SDF?"]
    assert (thread.head.turn_count, thread.head.title, thread.head.book_id) == (2, "What is URDF?", "book")
    assert (thread.head.created_at, thread.head.updated_at) == (moment(0), moment(6))
    assert thread.head.metadata == {"tags": ["ros2"]}
    assert thread.head.filters == {"hardware_tier_filter": 2}


async def test_owners_do_not_meet(store: Store) -> None:
    """The same id is another thread to another owner, and whatever is asked of a foreign one it is unknown."""
    thread_id = new_id()
    run_id = await store.say(FIRST_OWNER, thread_id, "mine")

    assert await store.threads.head(SECOND_OWNER, thread_id) is None
    assert await store.threads.recent(SECOND_OWNER, thread_id, 20) == ()
    assert await store.threads.reply(SECOND_OWNER, run_id) is None
    assert await store.log.run(SECOND_OWNER, run_id) is None
    assert (await store.threads.heads(SECOND_OWNER, limit=5)).heads == ()
    for attempt in (
        store.threads.thread(SECOND_OWNER, thread_id),
        store.threads.turns(SECOND_OWNER, thread_id),
        store.threads.delete(SECOND_OWNER, thread_id),
        store.threads.edit(SECOND_OWNER, thread_id, ThreadEdit(title="x")),
    ):
        with pytest.raises(UnknownThread):
            await attempt
    await store.say(SECOND_OWNER, thread_id, "yours")
    first_thread, second_thread = [
        await store.threads.thread(owner, thread_id) for owner in (FIRST_OWNER, SECOND_OWNER)
    ]
    assert [first_thread.messages[0].content, second_thread.messages[0].content] == ["mine", "yours"]


async def test_refusals_are_kept_and_are_no_context(store: Store) -> None:
    """A refusal is in the thread; the exchanges that a later answer may lean on leave it out."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "first")
    await store.say(FIRST_OWNER, thread_id, "refused", refused=True)
    await store.say(FIRST_OWNER, thread_id, "third")

    recent = await store.threads.recent(FIRST_OWNER, thread_id, 20)

    assert recent == (
        Exchange(question="first", answer="answer to first", standalone="first (alone)"),
        Exchange(question="third", answer="answer to third", standalone="third (alone)"),
    )
    assert len((await store.threads.thread(FIRST_OWNER, thread_id)).messages) == 6
    assert [exchange.question for exchange in await store.threads.recent(FIRST_OWNER, thread_id, 1)] == ["third"]


async def test_doubtful_claims_are_exported_and_are_no_context(store: Store) -> None:
    """An export shows a doubtful claim with the reason and the book's words; a later answer does not rest on it."""
    thread_id, answer = new_id(), "A node computes. It weighs\n12 kg. It talks."
    claim = {"text": "It weighs\n12 kg.", "start": 17, "end": 33, "verdict": "doubtful", "reason": "No number."}
    other = {"text": "It talks.", "start": 34, "end": 43, "verdict": "unconfirmed", "reason": ""}
    statements = [{**claim, "evidence": "A node has no weight."}, other, {**claim, "start": "x"}, None]
    turn = replace(turn_of(new_id(), "first"), answer=answer, reply={"response": answer, "statements": statements})
    async with store.leases.hold(FIRST_OWNER, thread_id, turn.run_id, 5):
        await store.log.begin(run_of(turn.run_id, FIRST_OWNER, thread_id))
        await store.threads.append(
            FIRST_OWNER,
            thread_id,
            turn,
            thread_exists=False,
            beginning=Beginning(book_id="b", title="t", metadata={}),
            filters={},
            summary=None,
        )

    [exchange] = await store.threads.recent(FIRST_OWNER, thread_id, 20)
    head = await store.threads.head(FIRST_OWNER, thread_id)
    assert head is not None
    text = as_markdown(head, await store.threads.turns(FIRST_OWNER, thread_id))

    assert exchange.answer == "A node computes.  It talks."
    assert f"{answer}\n\n⚑ “It weighs 12 kg.” No number. The book: “A node has no weight.”\n" in text


async def test_old_messages_move_and_are_read_as_before(store: Store) -> None:
    """Beyond the live 50, messages lie in the archive's table; pages, turns and exports do not show the difference."""
    thread_id = new_id()
    for number in range(30):
        await store.say(FIRST_OWNER, thread_id, f"q{number}", at=number * 2)

    async with store.engine.connect() as connection:
        live = (await connection.execute(select(messages.c.seq))).scalars().all()
        old = (await connection.execute(select(archived_messages.c.seq))).scalars().all()
    page = await store.threads.thread(FIRST_OWNER, thread_id)
    before = await store.threads.thread(FIRST_OWNER, thread_id, before=page.earlier)

    assert (sorted(old), sorted(live)) == (list(range(1, 11)), list(range(11, 61)))
    assert [message.seq for message in page.messages] == list(range(11, 61))
    assert [message.seq for message in before.messages] == list(range(1, 11))
    assert before.earlier is None
    assert len(page.messages) == LIVE_MESSAGES
    assert [turn.question for turn in await store.threads.turns(FIRST_OWNER, thread_id)] == [f"q{n}" for n in range(30)]
    assert len((await store.threads.thread(FIRST_OWNER, thread_id, limit=None)).messages) == 60


async def test_an_idle_thread_is_archived_and_comes_back_with_a_turn(store: Store) -> None:
    """Archived threads are listed, read and deleted as before; only a new turn brings one back."""
    idle, busy = new_id(), new_id()
    await store.say(FIRST_OWNER, idle, "old", at=0)
    await store.say(FIRST_OWNER, busy, "new", at=5000)

    assert await store.threads.archive_idle(moment(3600)) == 1
    head = await store.threads.head(FIRST_OWNER, idle)
    assert head is not None
    assert head.archived
    assert [message.content for message in (await store.threads.thread(FIRST_OWNER, idle)).messages] == [
        "old",
        "answer to old",
    ]
    assert {head.thread_id for head in (await store.threads.heads(FIRST_OWNER, limit=10)).heads} == {idle, busy}

    await store.say(FIRST_OWNER, idle, "again", at=6000)
    back = await store.threads.thread(FIRST_OWNER, idle)
    assert not back.head.archived
    assert [message.seq for message in back.messages] == [1, 2, 3, 4]
    async with store.engine.connect() as connection:
        assert not (await connection.execute(select(archived_messages))).all()
    await store.threads.archive_idle(moment(9000))
    await store.threads.delete(FIRST_OWNER, idle)
    with pytest.raises(UnknownThread):
        await store.threads.thread(FIRST_OWNER, idle)


async def test_lists_are_paged_newest_first(store: Store) -> None:
    """Pages follow each other without gap or repetition, also where two threads have the same moment."""
    thread_ids = []
    for number in range(7):
        thread_ids.append(new_id())
        await store.say(FIRST_OWNER, thread_ids[-1], "q", at=number // 2)

    listed_ids: list[str] = []
    cursor = None
    while True:
        page = await store.threads.heads(FIRST_OWNER, limit=3, cursor=cursor)
        listed_ids += [head.thread_id for head in page.heads]
        cursor = page.cursor
        if cursor is None:
            break

    assert listed_ids == thread_ids[::-1]
    for broken in ("nonsense", "", "é", "AAAA"):
        with pytest.raises(BadInput):
            await store.threads.heads(FIRST_OWNER, limit=3, cursor=broken)


async def test_edits_meet_the_version_that_was_read(store: Store) -> None:
    """A title given against an old version is a conflict and changes nothing."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "q")
    head = await store.threads.head(FIRST_OWNER, thread_id)
    assert head is not None

    edited_head = await store.threads.edit(
        FIRST_OWNER, thread_id, ThreadEdit(title=" New ", metadata={}, version=head.version)
    )
    with pytest.raises(Conflict):
        await store.threads.edit(FIRST_OWNER, thread_id, ThreadEdit(title="Late", version=head.version))

    assert (edited_head.title, edited_head.metadata) == ("New", {})
    now = await store.threads.head(FIRST_OWNER, thread_id)
    assert now is not None
    assert now.title == "New"


async def test_a_thread_that_was_deleted_is_not_resurrected(store: Store) -> None:
    """A turn that began before the deletion is not kept, and its run is gone with the thread."""
    thread_id, run_id = new_id(), str(uuid.uuid4())
    await store.say(FIRST_OWNER, thread_id, "q")
    async with store.leases.hold(FIRST_OWNER, thread_id, run_id, 5):
        await store.log.begin(run_of(run_id, FIRST_OWNER, thread_id))
        await store.threads.delete(FIRST_OWNER, thread_id)

        with pytest.raises(Conflict):
            await store.threads.append(
                FIRST_OWNER,
                thread_id,
                turn_of(run_id, "late"),
                thread_exists=True,
                beginning=Beginning(book_id="book", title="late"),
                filters={},
                summary=None,
            )

    assert await store.threads.head(FIRST_OWNER, thread_id) is None
    assert await store.log.run(FIRST_OWNER, run_id) is None


async def test_a_cancelled_run_is_not_kept(store: Store) -> None:
    """A run that somebody cancelled, in whatever process, cannot keep its turn any more."""
    thread_id, run_id = new_id(), str(uuid.uuid4())
    async with store.leases.hold(FIRST_OWNER, thread_id, run_id, 5):
        await store.log.begin(run_of(run_id, FIRST_OWNER, thread_id))
        await store.log.end(run_id, "cancelled")

        with pytest.raises(Conflict):
            await store.threads.append(
                FIRST_OWNER,
                thread_id,
                turn_of(run_id, "late"),
                thread_exists=False,
                beginning=Beginning(book_id="book", title="late"),
                filters={},
                summary=None,
            )

    assert await store.threads.head(FIRST_OWNER, thread_id) is None


async def test_an_attempt_is_repeated_only_when_it_failed(store: Store) -> None:
    """Under one id: again after an error or a kill, by whoever has the thread; not when it has its reply, and never in
    another thread."""
    thread_id, run_id = new_id(), str(uuid.uuid4())
    run = run_of(run_id, FIRST_OWNER, thread_id)

    assert await store.log.begin(run)
    assert await store.log.begin(run)  # its process was killed
    assert not await store.log.begin(run_of(run_id, FIRST_OWNER, new_id()))
    await store.log.end(run_id, "error", "no model")
    assert await store.log.begin(run)
    await store.log.end(run_id, "error")
    replied = await store.say(FIRST_OWNER, thread_id, "q")
    assert not await store.log.begin(run_of(replied, FIRST_OWNER, thread_id))
    run = await store.log.run(FIRST_OWNER, replied)
    assert run is not None
    assert run.state == "replied"


async def test_attempts_of_a_dead_process_were_interrupted(store: Store) -> None:
    """At the next start, a run that nobody carries on is marked; its question is kept for a second try."""
    run_id = str(uuid.uuid4())
    await store.log.begin(run_of(run_id, FIRST_OWNER, new_id(), "lost?"))

    assert await store.log.sweep() == 1
    run = await store.log.run(FIRST_OWNER, run_id)

    assert run is not None
    assert (run.state, run.question) == ("interrupted", "lost?")


async def test_a_busy_thread_waits_and_then_refuses(store: Store) -> None:
    """The second turn waits for the first; after its limit it gets an error, and the thread is free afterwards."""
    thread_id = new_id()
    async with store.leases.hold(FIRST_OWNER, thread_id, new_id(), 5):
        with pytest.raises(Busy):
            async with store.leases.hold(FIRST_OWNER, thread_id, new_id(), 0.2):
                pass
        async with store.leases.hold(SECOND_OWNER, thread_id, new_id(), 0.2):
            pass

    async with store.leases.hold(FIRST_OWNER, thread_id, new_id(), 0.2):
        pass


async def test_many_turns_at_once_are_taken_one_by_one(store: Store) -> None:
    """Forty at the same time: none lost, none doubled, each question next to its answer."""
    thread_id = new_id()

    await asyncio.gather(*(store.say(FIRST_OWNER, thread_id, f"q{number}") for number in range(40)))

    messages = (await store.threads.thread(FIRST_OWNER, thread_id, limit=None)).messages
    assert [message.seq for message in messages] == list(range(1, 81))
    pairs = list(zip(messages[::2], messages[1::2], strict=True))
    assert {question.content for question, _ in pairs} == {f"q{number}" for number in range(40)}
    assert all(answered.content == f"answer to {question.content}" for question, answered in pairs)


async def test_damaged_rows_do_not_make_a_thread_unreadable(store: Store) -> None:
    """A reply or look-ups that are no JSON read as empty, and the next turn works."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "q")
    async with store.engine.begin() as connection:
        await connection.execute(update(turns).values(reply="{broken", look_ups='[{"no": "such"}]'))

    thread = await store.threads.thread(FIRST_OWNER, thread_id)
    stored_turns = await store.threads.turns(FIRST_OWNER, thread_id)

    assert len(thread.messages) == 2
    assert (thread.retrieval_history, stored_turns[0].reply) == ((), {})
    await store.say(FIRST_OWNER, thread_id, "next")
    assert len(await store.threads.recent(FIRST_OWNER, thread_id, 20)) == 2


async def test_any_text_is_kept(store: Store) -> None:
    """Emoji, line separators and what no database can hold: text comes back, NUL and lone surrogates as a mark."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "🤖 \u2028 \u202e line\nbreak")
    await store.say(FIRST_OWNER, thread_id, "nul \x00 and \ud800")

    contents = [message.content for message in (await store.threads.thread(FIRST_OWNER, thread_id)).messages]

    assert contents[0] == "🤖 \u2028 \u202e line\nbreak"
    assert contents[2] == "nul \N{REPLACEMENT CHARACTER} and ?"


async def test_purging_forgets_every_owners_old_threads(store: Store) -> None:
    """Threads and log lines from before the moment are gone, archived or not; the others stay."""
    await store.say(FIRST_OWNER, new_id(), "old", at=0)
    await store.say(SECOND_OWNER, new_id(), "old too", at=10)
    await store.threads.archive_idle(moment(5))
    await store.say(FIRST_OWNER, new_id(), "new", at=9000)

    assert await store.threads.purge(moment(100)) == 2

    async with store.engine.connect() as connection:
        assert (await connection.execute(select(messages.c.content))).scalars().all() == ["new", "answer to new"]
        assert not (await connection.execute(select(archived_messages))).all()


async def test_deleting_leaves_nothing(store: Store) -> None:
    """After a deletion no table holds a word of the thread, its failed attempts included."""
    thread_id = new_id()
    for number in range(30):
        await store.say(FIRST_OWNER, thread_id, f"canary {number}")
    await store.log.begin(run_of(new_id(), FIRST_OWNER, thread_id, "canary failed"))
    await store.threads.rate(FIRST_OWNER, thread_id, 1, Feedback(rating="down", comment="canary comment"))
    await store.threads.delete(FIRST_OWNER, thread_id)

    async with store.engine.connect() as connection:
        for table in TABLES:
            rows = (await connection.execute(text(f"SELECT * FROM {table}"))).all()
            assert "canary" not in json.dumps([list(row) for row in rows], default=str), table


async def test_the_log_keeps_what_failed(store: Store) -> None:
    """A failed attempt leaves its question, its state and why; nothing in the conversation."""
    thread_id, run_id = new_id(), new_id()
    await store.log.begin(run_of(run_id, FIRST_OWNER, thread_id, "why?"))
    await store.log.end(run_id, "error", "the model did not answer")

    async with store.engine.connect() as connection:
        row = (await connection.execute(select(turn_log))).one()
    assert (row.question, row.state, row.error) == ("why?", "error", "the model did not answer")
    assert await store.threads.head(FIRST_OWNER, thread_id) is None


async def found(store: Store, query: str, owner: str = FIRST_OWNER, **options: object) -> list[str]:
    """The titles of the conversations with these words."""
    page = await store.threads.heads(owner, limit=50, query=query, **options)
    return [head.title for head in page.heads]


async def test_conversations_are_found_by_their_words(store: Store) -> None:
    """Every word is in the title or in a question, whatever its case; answers do not count, nor other owners."""
    first, second = new_id(), new_id()
    await store.say(FIRST_OWNER, first, "What is URDF?")
    await store.say(FIRST_OWNER, first, "How large is a costmap?", at=5)
    await store.say(FIRST_OWNER, second, "Über die Größe der Karte", at=10)
    await store.say(SECOND_OWNER, new_id(), "What is URDF to you?", at=20)

    assert await found(store, "urdf") == await found(store, "URDF costmap") == ["What is URDF?"]
    for query in ("über", "ÜBER Größe", "Über größe", "KARTE über"):
        assert await found(store, query) == ["Über die Größe der Karte"]
    assert await found(store, "urdf lidar") == await found(store, "answer") == []
    assert await found(store, "  ") == ["Über die Größe der Karte", "What is URDF?"]
    assert await found(store, "urdf", SECOND_OWNER) == ["What is URDF to you?"]


async def test_signs_of_patterns_are_letters(store: Store) -> None:
    """A percent sign, an underscore and a backslash are looked for as they are."""
    titles = ["100% of cmd_vel", "100 of cmdxvel", "a\\b", "quote ' and \" here"]
    for number, title in enumerate(titles):
        await store.say(FIRST_OWNER, new_id(), title, at=10 * number)

    for query, title in (
        ("0%", titles[0]),
        ("cmd_vel", titles[0]),
        ("\\", titles[2]),
        ("'", titles[3]),
        ('"', titles[3]),
    ):
        assert await found(store, query) == [title]
    assert await found(store, "%_%") == await found(store, "'; DROP TABLE messages; --") == []


async def test_archived_conversations_are_found(store: Store) -> None:
    """Old messages of a long conversation, and conversations that nobody used for long."""
    long_thread = new_id()
    await store.say(FIRST_OWNER, long_thread, "The beginning")
    await store.say(FIRST_OWNER, long_thread, "Something about quaternions", at=2)
    for number in range(LIVE_MESSAGES):
        await store.say(FIRST_OWNER, long_thread, f"Question {number}", at=10 + number)
    await store.threads.archive_idle(moment(3000))

    assert (await store.threads.heads(FIRST_OWNER, limit=1)).heads[0].archived
    assert await found(store, "quaternions") == await found(store, "beginning quaternions") == ["The beginning"]


async def test_a_search_is_paged(store: Store) -> None:
    """Cursors go on within the conversations that were found; another book's are left out."""
    for number in range(9):
        await store.say(FIRST_OWNER, new_id(), f"{'even' if number % 2 == 0 else 'odd'} {number}", at=10 * number)

    titles, cursor = [], None
    while True:
        page = await store.threads.heads(FIRST_OWNER, limit=2, cursor=cursor, query="EVEN", book_id="book")
        titles += [head.title for head in page.heads]
        if (cursor := page.cursor) is None:
            break

    assert titles == ["even 8", "even 6", "even 4", "even 2", "even 0"]
    assert await found(store, "even", book_id="another") == []


@pytest.mark.parametrize("query", ["x" * 201, "\0", "\ud800", " ".join(map(str, range(13)))])
async def test_a_query_that_cannot_be_searched_is_refused(store: Store, query: str) -> None:
    """Too long, or with signs that a database cannot have."""
    with pytest.raises(BadInput):
        await store.threads.heads(FIRST_OWNER, limit=5, query=query)


@pytest.mark.parametrize("book", ["\0", "\ud800"])
async def test_a_book_that_no_database_can_name_is_refused(store: Store, book: str) -> None:
    """With the name of the field, before the database sees it."""
    with pytest.raises(BadInput) as refused:
        await store.threads.heads(FIRST_OWNER, limit=5, book_id=book)

    assert refused.value.field == "book_id"


@pytest.mark.parametrize("thread_id", ["mine", "../books", "\0", "", "00000000-0000-1000-8000-000000000000"])
async def test_what_is_no_id_is_an_unknown_thread(store: Store, thread_id: str) -> None:
    """Whatever is done with it, and on PostgreSQL too, which has a type for ids."""
    own = OwnThreads(store.threads, FIRST_OWNER)
    for deed in (
        own.read(thread_id),
        own.turns(thread_id),
        own.conversation(thread_id),
        own.edit(thread_id, ThreadEdit(title="New")),
        own.rate(thread_id, 1, "up"),
        own.delete(thread_id),
    ):
        with pytest.raises(UnknownThread, match="there is no thread"):
            await deed


async def test_an_id_is_known_however_it_is_spelled(store: Store) -> None:
    """In capitals too, as over HTTP; deleting such a thread forgets its runs."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "What is URDF?")
    own = OwnThreads(store.threads, FIRST_OWNER)

    assert len(await own.turns(thread_id.upper())) == 1
    await own.delete(thread_id.upper())
    assert (await own.list()).heads == ()
    async with store.engine.connect() as connection:
        assert (await connection.execute(select(turn_log))).all() == []
