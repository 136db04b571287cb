"""Turns of a conversation: what they settle, what they lean on, and what is left when one fails."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from lectern.app import command_handlers
from lectern.app.commands import ExportThread
from lectern.app.lectern import Lectern
from lectern.conversations.runs import Failed, Runs
from lectern.conversations.turns import TurnBegun, TurnRequest, TurnStored
from lectern.domain.errors import (
    BadInput,
    Cancelled,
    Conflict,
    LecternError,
    Overloaded,
    ProviderError,
    UnknownBook,
    UnknownThread,
)
from lectern.domain.replies import Answer
from lectern.domain.threads import LOCAL_OWNER, Json
from lectern.store.database import open_database
from tests.answering.scripted import chats, open_scripted
from tests.databases import new_postgres_database
from tests.fakeai import FakeAI, ScriptedReply, Step, fake_ai, saying

NODE = "A node is a process that computes. [1]"
MAX_WAIT_SECONDS = 60.0  # for what must come; other tests share the machine
NEVER = 600.0  # seconds that a model takes which nobody waits for
WINE = "Which wine goes well with roast duck?"


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        server.script(then=Step(say=saying(NODE)))
        yield server


@pytest.fixture
async def lectern(tmp_path: Path, ai: FakeAI) -> AsyncIterator[Lectern]:
    """Lectern on a small book, answered by the scripted model."""
    async with open_scripted(tmp_path, ai) as opened:
        yield opened


def request(text: str = "What is a node?", **fields: Any) -> TurnRequest:
    """A question in a thread of its own, unless one is named."""
    ids = {"thread_id": str(uuid.uuid4()), "run_id": str(uuid.uuid4()), "owner": LOCAL_OWNER}
    return TurnRequest(**{**ids, "text": text, **fields})


async def say(lectern: Lectern, text: str = "What is a node?", **fields: Any) -> Json:
    """One turn, to its reply."""
    return await lectern.app.runs.start(request(text, **fields)).reply()


async def test_a_turn_is_kept_as_it_was_shown(lectern: Lectern) -> None:
    """The last event, the thread's reply and what the store gives under the run's id are the same."""
    turn_request = request(stream=True)
    run = lectern.app.runs.start(turn_request)
    events = [event async for _, event in run.follow()]

    assert isinstance(events[0], TurnBegun)
    assert isinstance(events[-1], TurnStored)
    [turn] = await lectern.threads.turns(turn_request.thread_id)
    assert (
        turn.reply
        == events[-1].reply
        == await lectern.app.conversations.threads.reply(LOCAL_OWNER, turn_request.run_id)
    )
    assert turn.answer == turn.reply["response"]
    assert turn.reply["session_id"] == turn_request.thread_id


async def test_a_follow_up_leans_on_the_answers_before_it(lectern: Lectern, ai: FakeAI) -> None:
    """The model is given the earlier question and answer, and none of the refusals between them."""
    thread_id = str(uuid.uuid4())
    await say(lectern, thread_id=thread_id)
    refused = await say(lectern, WINE, thread_id=thread_id)
    ai.received.clear()
    await say(lectern, "How do nodes talk to each other?", thread_id=thread_id)

    assert not refused["should_answer"]
    sent_messages = str(chats(ai)[-1]["messages"])
    assert "What is a node?" in sent_messages
    assert "wine" not in sent_messages
    thread = await lectern.threads.read(thread_id)
    assert [message.role for message in thread.messages] == ["user", "assistant"] * 3


async def test_a_thread_keeps_its_book(lectern: Lectern) -> None:
    """Another book on the same thread is a conflict; one that the caller may not read does not exist."""
    thread_id = str(uuid.uuid4())
    await say(lectern, thread_id=thread_id, book_id="robots")

    with pytest.raises(Conflict, match="about 'robots'"):
        await say(lectern, thread_id=thread_id, book_id="other")
    with pytest.raises(UnknownBook):
        await say(lectern, thread_id=thread_id, readable=frozenset({"other"}))
    with pytest.raises(UnknownBook):
        await say(lectern, book_id="other")
    assert len((await lectern.threads.read(thread_id)).messages) == 2


async def test_filters_that_are_left_out_are_the_threads_last(lectern: Lectern) -> None:
    """A filter stays until it is given anew; None clears it."""
    thread_id = str(uuid.uuid4())

    async def filters(scope_fields: dict[str, Any]) -> Json:
        await say(lectern, thread_id=thread_id, filters=scope_fields)
        return (await lectern.threads.read(thread_id)).head.filters

    assert await filters({"hardware_tier_filter": 2, "module_filter": "ros2"}) == {
        "hardware_tier_filter": 2,
        "module_filter": "ros2",
    }
    assert await filters({}) == {"hardware_tier_filter": 2, "module_filter": "ros2"}
    assert await filters({"module_filter": None}) == {"hardware_tier_filter": 2}
    assert await filters({"hardware_tier_filter": 4}) == {"hardware_tier_filter": 4}
    with pytest.raises(BadInput, match="module_filter"):
        await say(lectern, thread_id=thread_id, filters={"module_filter": "none"})
    assert (await lectern.threads.read(thread_id)).head.turn_count == 4


async def test_a_full_thread_offers_a_new_one(tmp_path: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn after the last one allowed is a conflict that says what to do, and costs nothing."""
    monkeypatch.setenv("AGENT_MAX_TURNS", "2")
    async with open_scripted(tmp_path, ai) as lectern:
        thread_id = str(uuid.uuid4())
        for _ in range(2):
            await say(lectern, thread_id=thread_id)
        ai.received.clear()

        with pytest.raises(Conflict, match="new one"):
            await say(lectern, thread_id=thread_id)

        assert not ai.received
        assert (await lectern.threads.read(thread_id)).head.turn_count == 2


async def test_a_failed_turn_leaves_only_a_line_in_the_log(lectern: Lectern, ai: FakeAI) -> None:
    """No message, nothing counted; the question and the error are in the log, and the next turn works."""
    ai.script(then=Step(status=500))
    turn_request = request()

    with pytest.raises(ProviderError):
        await lectern.app.runs.start(turn_request).reply()

    run = await lectern.app.conversations.log.run(LOCAL_OWNER, turn_request.run_id)
    assert run is not None
    assert (run.state, run.question) == ("error", turn_request.text)
    assert run.error
    assert await lectern.app.conversations.threads.head(LOCAL_OWNER, turn_request.thread_id) is None
    ai.script(then=Step(say=saying(NODE)))
    assert (await say(lectern, thread_id=turn_request.thread_id))["should_answer"]


async def test_a_cancelled_run_leaves_the_thread_as_it_was(lectern: Lectern, ai: FakeAI) -> None:
    """Cancelling ends the run at once, with an error for whoever follows; the thread is free and unchanged."""
    ai.script(then=Step(say=saying(NODE), delay=NEVER))
    turn_request = request()
    run = lectern.app.runs.start(turn_request)
    await run.wait_until_begun()
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        await run.cancel()

    with pytest.raises(Cancelled):
        await run.reply()
    stored_run = await lectern.app.conversations.log.run(LOCAL_OWNER, turn_request.run_id)
    assert stored_run is not None
    assert stored_run.state == "cancelled"
    assert await lectern.app.conversations.threads.head(LOCAL_OWNER, turn_request.thread_id) is None
    ai.script(then=Step(say=saying(NODE)))
    assert (await say(lectern, thread_id=turn_request.thread_id))["should_answer"]


@pytest.mark.parametrize("deed", ["cancel", "delete the thread"])
async def test_an_end_in_another_process_is_heard(
    lectern: Lectern, ai: FakeAI, postgres_address: str, deed: str
) -> None:
    """Whoever carries a run on hears soon that another process cancelled it, or deleted its thread: whoever follows is
    told, no model is paid for any longer, and the thread is free."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = lectern.app.runs_on(first_database), lectern.app.runs_on(second_database)
        first = request()
        await here.start(first).reply()
        ai.script(then=Step(say=saying(NODE), delay=NEVER))
        turn_request = request(thread_id=first.thread_id)
        run = here.start(turn_request)
        await run.wait_until_begun()
        if deed == "cancel":
            await there.conversations.log.end(turn_request.run_id, "cancelled")
        else:
            await there.conversations.threads.delete(LOCAL_OWNER, turn_request.thread_id)
        with pytest.raises(Cancelled):
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await run.reply()
        await run.wait_until_ended()
        ai.script(then=Step(say=saying(NODE)))
        assert (await there.start(request(thread_id=first.thread_id)).reply())["should_answer"]
        await here.close(0)
        await there.close(0)


@pytest.mark.parametrize("step", range(12))
async def test_cancelling_anywhere_keeps_all_or_nothing(lectern: Lectern, step: int) -> None:
    """Whenever a run is cancelled, the thread holds the whole turn or nothing, and the log agrees."""
    turn_request = request()
    run = lectern.app.runs.start(turn_request)
    for _ in range(step * 3):
        await asyncio.sleep(0)
    await asyncio.sleep(step * 0.004)
    await run.cancel()

    head = await lectern.app.conversations.threads.head(LOCAL_OWNER, turn_request.thread_id)
    stored_run = await lectern.app.conversations.log.run(LOCAL_OWNER, turn_request.run_id)
    last = run.events[-1]
    assert isinstance(last, TurnStored) == (head is not None)
    if head is not None:
        assert head.turn_count == 1
        assert stored_run is not None
        assert stored_run.state == "replied"
    else:
        assert isinstance(last, Failed)
        assert stored_run is None or stored_run.state == "cancelled"


async def test_the_same_id_twice_is_one_turn(lectern: Lectern, ai: FakeAI) -> None:
    """Asked again under the same id, by itself or side by side, a question is answered once and replied alike."""
    turn_request = request(digest="same")
    replies = await asyncio.gather(
        lectern.app.runs.start(turn_request).reply(), lectern.app.runs.start(turn_request).reply()
    )
    fresh = Runs(
        lectern.app.conversations, max_runs=5, max_runs_per_owner=5
    )  # another process, or this one after a restart
    again = await fresh.start(turn_request).reply()

    assert replies[0] == replies[1] == again
    assert len(chats(ai)) == 1
    assert (await lectern.threads.read(turn_request.thread_id)).head.turn_count == 1
    with pytest.raises(BadInput, match="Idempotency-Key"):
        await fresh.start(request(run_id=turn_request.run_id, thread_id=turn_request.thread_id, digest="other")).reply()


async def test_too_many_at_once_are_turned_away(lectern: Lectern, ai: FakeAI) -> None:
    """Beyond the cap a run is refused before it begins; one that ended makes room."""
    ai.script(then=Step(say=saying(NODE), delay=NEVER))
    runs = Runs(lectern.app.conversations, max_runs=3, max_runs_per_owner=2)
    first_runs = [runs.start(request(owner="a")) for _ in range(2)]

    with pytest.raises(Overloaded):
        runs.start(request(owner="a"))
    second_run = runs.start(request(owner="b"))
    with pytest.raises(Overloaded):
        runs.start(request(owner="c"))
    await first_runs[0].cancel()
    runs.start(request(owner="c"))
    await runs.close(0)
    assert runs.active == 0
    assert all(run.done for run in (*first_runs, second_run))


async def test_a_summary_comes_with_the_fifth_exchange(lectern: Lectern) -> None:
    """Before it there is none; from then on it names what the conversation is about, in at most 200 characters."""
    thread_id = str(uuid.uuid4())
    events = []
    for text in (
        "What is a node?",
        "What is a service?",
        "Which topics does a node have?",
        "Why a node?",
        "And a node?",
    ):
        await say(lectern, text, thread_id=thread_id)
        events.append((await lectern.threads.read(thread_id)).head.topic_summary)

    assert events[:4] == [None] * 4
    assert events[4] is not None
    assert "node" in events[4]
    assert len(events[4]) <= 200


async def test_an_ephemeral_conversation_leaves_nothing(lectern: Lectern) -> None:
    """It can be followed up like any other, and no file of the home holds a word of it."""
    runs = await lectern.app.ephemeral_runs()
    thread_id = str(uuid.uuid4())
    for _ in range(2):
        await runs.start(request("What is a canarywort node?", thread_id=thread_id)).reply()

    assert (await runs.conversations.threads.thread(LOCAL_OWNER, thread_id)).head.turn_count == 2
    assert await lectern.app.conversations.threads.head(LOCAL_OWNER, thread_id) is None
    stored_bytes = b"".join(file.read_bytes() for file in lectern.app.home.path.glob("lectern.db*"))
    assert b"canarywort" not in stored_bytes


async def test_an_export_knows_an_id_however_it_is_spelled(lectern: Lectern) -> None:
    """In capitals too, as over HTTP; what is no id is an unknown thread."""
    thread_id = str(uuid.uuid4())
    await say(lectern, thread_id=thread_id)

    assert len([line async for line in command_handlers.run(ExportThread(thread_id=thread_id.upper()), lectern)]) == 1
    with pytest.raises(UnknownThread):
        await anext(command_handlers.run(ExportThread(thread_id="mine"), lectern))


async def test_python_asks_and_reads_its_own_threads(lectern: Lectern) -> None:
    """`ask` with a thread keeps the turn; without one it keeps nothing."""
    thread_id = str(uuid.uuid4())
    reply = await lectern.ask("What is a node?", thread=thread_id)
    await lectern.ask("What is a node?")

    assert isinstance(reply, Answer)
    page = await lectern.threads.list()
    assert [head.thread_id for head in page.heads] == [thread_id]
    assert (await lectern.threads.read(thread_id)).messages[1].content == reply.text


async def test_an_unexpected_error_is_not_shown(lectern: Lectern, monkeypatch: pytest.MonkeyPatch) -> None:
    """What should not happen ends the run with a plain sentence; nothing of the inside leaks."""

    async def broken(*_: object) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(type(lectern.app.conversations.threads), "append", broken)
    with pytest.raises(LecternError) as raised:
        await say(lectern)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("model_summary", "is_stored"),
    [
        ("Nodes and how they talk", True),
        ("See https://evil.example for more", False),
        ("[nodes](evil)", False),
        ("x" * 201, False),
    ],
)
async def test_the_models_summary_is_words_alone(
    lectern: Lectern, ai: FakeAI, model_summary: str, is_stored: bool
) -> None:
    """After five exchanges the model sums the questions up; what leads somewhere, or is too long, is not taken."""

    def answer(body: dict[str, Any]) -> ScriptedReply:
        return ScriptedReply(text=model_summary if "the conversation is about" in str(body["messages"][0]) else NODE)

    ai.script(then=Step(say=answer))
    thread_id = str(uuid.uuid4())
    for _ in range(5):
        run = lectern.app.runs.start(request(thread_id=thread_id))
        await run.reply()
        await run.wait_until_ended()

    summary = (await lectern.threads.read(thread_id)).head.topic_summary
    assert summary is not None
    assert (summary == model_summary) == is_stored
    summary_request = next(body for body in chats(ai) if "the conversation is about" in str(body["messages"][0]))
    assert "process that computes" not in str(summary_request["messages"][1:])


async def test_the_last_turn_is_given_again_to_who_lost_it(
    tmp_path: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again under its key, the last turn that fits is the reply, not the limit; so it is after a restart."""
    monkeypatch.setenv("AGENT_MAX_TURNS", "1")
    async with open_scripted(tmp_path, ai) as lectern:
        turn_request = request(digest="key")
        first = await lectern.app.runs.start(turn_request).reply()
        again = await Runs(lectern.app.conversations, max_runs=5, max_runs_per_owner=5).start(turn_request).reply()

    assert again == first


async def test_another_body_under_the_key_changes_nothing(lectern: Lectern) -> None:
    """It is refused before it becomes a run, so the first one can still be followed."""
    turn_request = request(digest="one")
    reply = await lectern.app.runs.start(turn_request).reply()

    with pytest.raises(BadInput, match="Idempotency-Key"):
        lectern.app.runs.start(request(run_id=turn_request.run_id, thread_id=turn_request.thread_id, digest="two"))
    run = lectern.app.runs.find(LOCAL_OWNER, turn_request.run_id)
    assert run is not None
    assert await run.reply() == reply


async def test_a_number_that_was_never_given_begins_anew(lectern: Lectern) -> None:
    """Whoever comes back with a strange number gets every event, the reply included."""
    run = lectern.app.runs.start(request())
    await run.reply()

    events = [number async for number, _ in run.follow(999)]
    assert events == list(range(1, len(run.events) + 1))


async def test_what_fails_after_the_reply_is_not_the_turns(lectern: Lectern, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary that breaks leaves the reply the last event."""

    async def broken(_: object) -> str:
        raise RuntimeError("no summary")

    monkeypatch.setattr(type(lectern.app.ask_deps.answerer), "summary", lambda *_: broken(_))
    thread_id = str(uuid.uuid4())
    for _ in range(5):
        run = lectern.app.runs.start(request(thread_id=thread_id))
        await run.reply()
        await run.wait_until_ended()

    assert isinstance(run.events[-1], TurnStored)


async def test_nothing_of_a_deleted_thread_is_given_from_memory(lectern: Lectern) -> None:
    """Its runs cannot be found any more."""
    turn_request = request()
    await lectern.app.runs.start(turn_request).reply()
    await lectern.app.conversations.threads.delete(LOCAL_OWNER, turn_request.thread_id)
    lectern.app.runs.forget_thread(LOCAL_OWNER, turn_request.thread_id)

    assert lectern.app.runs.find(LOCAL_OWNER, turn_request.run_id) is None


async def test_nor_of_one_that_was_deleted_elsewhere(lectern: Lectern) -> None:
    """By a command, the retention or another process, which cannot tell this one's memory."""
    turn_request = request()
    await lectern.app.runs.start(turn_request).reply()
    assert await lectern.app.runs.recall(LOCAL_OWNER, turn_request.run_id) is not None
    await lectern.app.conversations.threads.delete(LOCAL_OWNER, turn_request.thread_id)

    assert await lectern.app.runs.recall(LOCAL_OWNER, turn_request.run_id) is None
    assert lectern.app.runs.find(LOCAL_OWNER, turn_request.run_id) is None


async def test_a_change_of_subject_is_not_answered_with_the_old_one(tmp_path: Path, ai: FakeAI) -> None:
    """After an answered question, what the book does not have is refused all the same; what names its subject is
    searched as it is."""
    async with open_scripted(tmp_path, ai) as lectern:
        ai.script(then=Step(say=saying(NODE)))
        thread_id = str(uuid.uuid4())
        await say(lectern, thread_id=thread_id)
        bread = await say(lectern, "How do I bake bread?", thread_id=thread_id)
        service = await say(lectern, "What is a service?", thread_id=thread_id)

    assert not bread["should_answer"]
    assert service["standalone"] == "What is a service?"


async def test_the_models_summary_stays_and_is_renewed(lectern: Lectern, ai: FakeAI) -> None:
    """Phrases from the questions do not replace it, and the model writes it anew every five exchanges, also after the
    twentieth, when the history that it sees does not grow any more."""
    thread_id = str(uuid.uuid4())
    summaries: list[str | None] = []
    for turn in range(1, 26):
        ai.script(then=Step(say=lambda body, turn=turn: _summary_or_answer(body, f"Nodes until turn {turn}")))
        run = lectern.app.runs.start(request(thread_id=thread_id))
        await run.reply()
        await run.wait_until_ended()
        summaries.append((await lectern.threads.read(thread_id)).head.topic_summary)

    assert summaries == [None if turn < 5 else f"Nodes until turn {turn // 5 * 5}" for turn in range(1, 26)]


def _summary_or_answer(body: dict[str, Any], summary: str) -> ScriptedReply:
    is_summary = "the conversation is about" in str(body["messages"][0])
    return ScriptedReply(text=summary if is_summary else NODE)
