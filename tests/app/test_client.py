"""`lectern.connect` against a real server: every method beside the same call on a local Lectern over the same home."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import lectern
from lectern import views
from lectern.app.client import RemoteLectern, connect
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.confidence.calibration import LabelledQuestion
from lectern.domain import errors
from lectern.domain.chunks import Chunk
from lectern.domain.evidence import Findings, Hit
from lectern.domain.jobs import JobOrder
from lectern.domain.keys import RIGHTS, KeyRequest
from lectern.domain.replies import Answer, Exchange, Refusal, Reply
from lectern.domain.scope import Scope
from lectern.domain.threads import Feedback, ThreadEdit
from tests.served import LECTERN, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
LONG = "".join(
    f"\n## Lamp {number}\n\n" + " ".join(f"Lamp {number} shines {word} in room {word}." for word in range(60)) + "\n"
    for number in range(8)
)
BOOKS = {
    "alpha": {
        "ros2/01-nodes.md": "# Nodes\n\nA node is a process that computes. Nodes talk to each other over named topics."
        "\n\n"
        "## Topics\n\nA topic is a named channel. Every node that subscribes to it gets the messages.\n",
        "ros2/02-services.md": "# Services\n\nA service is a call with a reply. The client waits for the reply of the "
        "server.\n\n## Actions\n\nAn action is a long task that can be cancelled on its way.\n\n## Gyroscopes\n\n"
        "A gyroscope is a sensor that measures how fast a robot turns. Gyroscopes drift: their small errors add up, so "
        "that a robot compares them with its compass every few seconds.\n",
        "gazebo/01-worlds.md": "# Worlds\n\nA world holds models and light. Gravity is set in the world file.\n",
        "gazebo/02-lamps.md": f"# Lamps\n{LONG}",
    },
    "beta": {"01-frames.md": "# Frames\n\nA frame is a coordinate system. Transforms connect two frames.\n"},
    "gone": {"01-sensors.md": "# Sensors\n\nA lidar measures distance with light.\n"},
    "gamma": {
        "01-arms.md": "# Arms\n\nAn arm has joints and links.\n",
        "02-grippers.md": "# Grippers\n\nA gripper holds an object with two fingers.\n",
    },
}
INDEXED = ("alpha", "beta", "gone")
QUESTION = "What is a node?"
OUTSIDE = "How long does sourdough bread rise?"
NOBODYS = "00000000-0000-4000-8000-000000000000"
TIMES = ("queued_at", "started_at", "completed_at", "duration_seconds", "chunks_per_second", "stage_seconds")


@dataclass(frozen=True)
class Pair:
    """A Lectern here and one on a server, on copies of one home."""

    here: Lectern
    there: RemoteLectern
    books: Path


@dataclass(frozen=True)
class Site:
    """The server, its keys, and the home that the local Lectern takes."""

    address: str
    keys: dict[str, str]
    home: Path
    books: Path


async def build(home: Path, books: Path) -> dict[str, str]:
    """A home with three books, two of them damaged, and keys."""
    for book, files in BOOKS.items():
        for name, text in files.items():
            file = books / book / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    async with open_lectern(Settings(home=home)) as opened:
        for book in INDEXED:
            await opened.ingest(books / book, book=book)
        all_rights = await opened.app.keys.create(KeyRequest(name="all", rights=frozenset(RIGHTS)))
        reading = await opened.app.keys.create(KeyRequest(name="reading", rights=frozenset({"read"})))
    with sqlite3.connect(home / "lectern.db") as database:
        database.execute("UPDATE lessons SET payload_digest = 'x' WHERE book_id IN ('beta', 'gone')")
    shutil.rmtree(books / "gone")
    return {"all": all_rights.text, "reading": reading.text}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on a copy of the home."""
    folder = tmp_path_factory.mktemp("client")
    keys = asyncio.run(build(folder / "here", folder / "books"))
    shutil.copytree(folder / "here", folder / "there")
    settings = {
        "LECTERN_HOME": str(folder / "there"),
        "LECTERN_BOOKS": str(folder / "books"),
        "LECTERN_DEFAULT_BOOK": "alpha",
        "LECTERN_RATE_LIMIT": "0",
    }
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        yield Site(address, keys, folder / "here", folder / "books")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(site: Site) -> AsyncIterator[Pair]:
    """Both, open for all tests of this file."""
    settings = Settings(home=site.home, default_book="alpha")
    async with open_lectern(settings) as here, connect(site.address, site.keys["all"]) as there:
        yield Pair(here, there, site.books)


async def drain(events: AsyncIterator[Any], collected: list[Any]) -> None:
    """Every event, as far as they come."""
    async for event in events:
        collected.append(event)  # noqa: PERF401  # what came before an error is wanted, too


def as_sent(chunk: Chunk) -> Chunk:
    """A chunk without what a search does not send."""
    return replace(
        chunk,
        trail=(),
        module_title="",
        chapter_title="",
        source_file_hash="",
        word_count=0,
        token_count=0,
        char_count=0,
    )


def sent_hit(hit: Hit) -> Hit:
    """A hit without what a search does not send."""
    return replace(hit, chunk=as_sent(hit.chunk), windows=(), before=(), after=())


def neighbours(hit: Hit) -> list[tuple[Any, ...]]:
    """What is sent of a hit's neighbours."""
    around = (*hit.before, *hit.after)
    return [(chunk.id, chunk.text, chunk.url, chunk.section_title, chunk.lesson_title) for chunk in around]


def as_dict(reply: Reply) -> dict[str, Any]:
    """What a reader sees of a reply, and what was measured, times aside."""
    account = replace(reply.account, look_ups=(), instructions="", tool_uses=(), created_at="", timings=None)  # type: ignore[arg-type]  # no time is the same twice
    values = {"kind": reply.kind, "text": reply.text, "account": account, "removed": reply.removed}
    values["considered"] = [(hit.chunk.id, hit.chunk.url, hit.similarity) for hit in reply.considered]
    if isinstance(reply, Refusal):
        return {**values, "why": (reply.reason, reply.nearest, reply.outside_scope, reply.other_books)}
    values["cited"] = [
        (citation.hit.chunk.id, citation.hit.chunk.breadcrumb, citation.hit.chunk.source_file, citation.hit.similarity,
         citation.number, citation.passage, citation.section, citation.url, citation.fragment_url,
         citation.line_start, citation.line_end)
        for citation in reply.citations
    ]  # fmt: skip
    return {**values, "statements": reply.statements, "with_sources": views.format_with_sources(reply)}


async def test_a_search_finds_the_same(pair: Pair) -> None:
    """Same hits in the same order, each whole but for what HTTP does not carry, and the same filters."""
    search_options: dict[str, Any] = {
        "limit": 3,
        "expand": 1,
        "scope": Scope(module="gazebo", levels=("A2",), chapters=(0, 9)),
    }
    here: Findings = await pair.here.search("lamp in a room", book="alpha", **search_options)
    there = await pair.there.search("lamp in a room", book="alpha", **search_options)

    assert len(there.hits) == 3
    assert there.hits[0].before or there.hits[0].after
    assert [replace(hit, before=(), after=()) for hit in there.hits] == [sent_hit(hit) for hit in here.hits]
    assert [neighbours(hit) for hit in there.hits] == [neighbours(hit) for hit in here.hits]
    assert (there.where, there.total_found, there.mode, there.query) == (
        here.where,
        here.total_found,
        here.mode,
        here.query,
    )
    assert (there.language, there.vector, there.hits[0].vector) == ("", (), ())


@pytest.mark.parametrize("question", [QUESTION, OUTSIDE, "How many modules does the book have?"])
async def test_a_reply_is_the_same(pair: Pair, question: str) -> None:
    """Answers and refusals: text, citations, verdicts, metrics and filters. Nothing stays in the server's threads."""
    here = await pair.here.ask(question, book="alpha", top_k=4, similarity_threshold=0.1)
    there = await pair.there.ask(question, book="alpha", top_k=4, similarity_threshold=0.1)

    assert as_dict(there) == as_dict(here)
    assert isinstance(there, Refusal if question == OUTSIDE else Answer)
    assert (await pair.there.threads.list()).heads == ()


async def test_a_stream_has_the_same_events(pair: Pair) -> None:
    """In the same order, with the same evidence, text and reply; nothing stays in the server's threads."""
    here = [event async for event in pair.here.stream(QUESTION, book="alpha")]
    there = [event async for event in pair.there.stream(QUESTION, book="alpha")]

    assert [event.kind for event in there] == [event.kind for event in here]
    for local_hit, theirs in zip(here, there, strict=True):
        if local_hit.kind == "evidence":
            assert theirs.kind == "evidence"
            assert theirs.metrics == local_hit.metrics
            assert [hit.chunk.id for hit in theirs.hits] == [hit.chunk.id for hit in local_hit.hits]
        elif local_hit.kind == "replied":
            assert theirs.kind == "replied"
            assert as_dict(theirs.reply) == as_dict(local_hit.reply)
        else:
            assert theirs == local_hit
    assert (await pair.there.threads.list()).heads == ()


async def test_a_stream_that_is_left_is_ended(pair: Pair) -> None:
    """Whoever stops listening leaves nothing behind on the server."""
    events = pair.there.stream(QUESTION, book="alpha")
    first = await anext(events)
    await events.aclose()  # type: ignore[attr-defined]  # an async generator
    await pair.there.ask(QUESTION, book="alpha")  # a run that went on would have its reply by now

    assert first.kind == "state"
    assert (await pair.there.threads.list()).heads == ()


async def test_a_thread_follows_up(pair: Pair) -> None:
    """The second question is understood by the first; threads are listed, read, edited and deleted alike."""
    thread = str(uuid.uuid4())
    scope = Scope(module="ros2")
    for side in (pair.here, pair.there):
        await side.ask("What is a topic?", book="alpha", thread=thread, scope=scope)
        async for _ in side.stream("And who gets its messages?", thread=thread):
            pass
    here, there = [await side.threads.read(thread) for side in (pair.here, pair.there)]
    local_turns, theirs = [await side.threads.turns(thread) for side in (pair.here, pair.there)]

    assert [(message.role, message.content, message.seq) for message in there.messages] == [
        (message.role, message.content, message.seq) for message in here.messages
    ]
    assert (there.head.filters, there.head.title, there.head.turn_count) == (
        here.head.filters,
        here.head.title,
        2,
    )
    assert len(there.retrieval_history) == len(here.retrieval_history)
    for our, remote_turn in zip(local_turns, theirs, strict=True):
        same = replace(our, run_id="", asked_at="", replied_at="", reply={}, look_ups=(), tool_uses=())
        assert replace(remote_turn, run_id="", asked_at="", replied_at="", reply={}, tool_uses=()) == same
        assert [(use.name, use.arguments, use.output) for use in remote_turn.tool_uses] == [
            (use.name, use.arguments, use.output) for use in our.tool_uses
        ]
        assert remote_turn.asked_at < remote_turn.replied_at
        assert remote_turn.reply["sources"] == our.reply["sources"]
    assert theirs[1].standalone != theirs[1].question
    conversations = [await side.threads.conversation(thread) for side in (pair.here, pair.there)]
    local_messages, remote_messages = [
        [(message.role, message.content) for message in conversation.messages] for conversation in conversations
    ]
    assert remote_messages == local_messages
    assert remote_messages[0][0] == "system"
    [head] = (await pair.there.threads.list(limit=5)).heads
    assert head == replace(there.head, filters={})
    edited = await pair.there.threads.edit(thread, ThreadEdit(title="Topics", version=there.head.version))
    assert (edited.title, edited.metadata) == ("Topics", {})
    with pytest.raises(errors.Conflict):
        await pair.there.threads.edit(thread, ThreadEdit(title="Late", version=there.head.version))
    with pytest.raises(errors.Conflict, match="new one"):
        await pair.there.ask("What is a frame?", book="beta", thread=thread)
    await pair.there.threads.delete(thread)
    with pytest.raises(errors.UnknownThread):
        await pair.there.threads.read(thread)


async def test_feedback_and_insights_are_the_same(pair: Pair) -> None:
    """A rated conversation reads the same, and so does what readers asked; a deleted one leaves no trace."""
    thread = str(uuid.uuid4())
    for side in (pair.here, pair.there):
        for head in (await side.threads.list()).heads:  # of other tests
            await side.threads.delete(head.thread_id)
        await side.ask(QUESTION, thread=thread)
        await side.ask("Which wine goes well with roast duck?", thread=thread)
        await side.threads.rate(thread, 1, "up")
        await side.threads.rate(thread, 2, "down", reason="wrong", comment="I like duck.")
        await side.threads.rate(thread, 1, None)

    here, there = [await side.insights(days=7) for side in (pair.here, pair.there)]
    feedback = [[turn.feedback for turn in await side.threads.turns(thread)] for side in (pair.here, pair.there)]
    for side in (pair.here, pair.there):
        await side.threads.delete(thread)

    assert here == there
    assert (here.turns, here.answered, here.refused) == (2, 1, 1)
    assert (here.thumbs.up, here.thumbs.down, here.thumbs.reasons) == (0, 1, {"wrong": 1})
    assert feedback[0] == feedback[1] == [None, Feedback(rating="down", reason="wrong", comment="I like duck.")]
    assert [(await side.insights(days=7)).turns for side in (pair.here, pair.there)] == [0, 0]


async def test_books_lessons_and_outlines_are_the_same(pair: Pair) -> None:
    """A lesson comes whole, field by field; a book without a name is the server's default."""
    outline = await pair.there.outline("alpha")
    lesson = outline.modules[0].chapters[0].lessons[0].parent_doc_id
    books = await pair.there.books()

    assert outline == await pair.here.outline("alpha") == await pair.there.outline()
    assert await pair.there.lesson(lesson) == await pair.here.lesson(lesson, book="alpha")
    for local_book, theirs in zip(await pair.here.books(), books, strict=True):
        manifest = replace(theirs.manifest, book_id=local_book.manifest.book_id, title=local_book.manifest.title)
        assert replace(theirs, manifest=local_book.manifest, source=local_book.source) == local_book
        assert theirs.manifest == manifest
    assert await pair.there.book() == await pair.there.book("alpha") == books[0]


async def test_the_details_of_a_book_are_the_same(pair: Pair) -> None:
    """But for the manifest, of which a server sends the name and the title."""
    here, there = await pair.here.book_details("alpha"), await pair.there.book_details()

    assert replace(there, entry=here.entry) == here
    assert there.entry == await pair.there.book("alpha")
    assert there.suggestions


async def test_a_book_is_ingested_and_removed(pair: Pair) -> None:
    """The folder is the server's; the events, the report, the job's record and the number of chunks are the same."""
    here = [event async for event in pair.here.ingesting(pair.books / "gamma", book="gamma")]
    there = [event async for event in pair.there.ingesting("gamma", book="gamma")]

    assert [event.kind for event in there] == [event.kind for event in here]
    assert there[0].kind == "planned"
    assert here[0].kind == "planned"
    assert len(there[0].plan.new) == len(here[0].plan.new) == 2
    same = {"job_id": 0, "queued_at": "", **dict.fromkeys(TIMES[1:])}
    assert replace(there[-1].job, **same) == replace(here[-1].job, **same)
    again = await pair.there.ingest(pair.books / "gamma", book="gamma", mode="full")
    assert (again.status, again.files_processed) == ("completed", 2)
    assert (await pair.there.jobs.record(again.job_id)).job == again
    for page in (
        await pair.there.jobs.page(books=frozenset({"gamma", "beta"}), limit=3),
        await pair.there.jobs.page(limit=2),
    ):
        assert [record.job.job_id for record in page][:2] == [again.job_id, there[-1].job.job_id]
    assert (await pair.there.jobs.page(limit=1, before=again.job_id))[0].job.job_id == there[-1].job.job_id
    assert (await pair.there.jobs.cancel(again.job_id)).job == again
    with pytest.raises(errors.UnknownJob):
        await pair.there.jobs.record(again.job_id, frozenset({"alpha"}))
    assert await pair.there.remove("gamma") == await pair.here.remove("gamma") > 0
    with pytest.raises(errors.UnknownBook):
        await pair.there.book("gamma")


async def test_a_job_fails_with_its_own_error(pair: Pair) -> None:
    """A folder of another book: the class and the words of a local call, after the job's last state."""
    progress: list[Any] = []
    with pytest.raises(errors.WrongBook) as there:
        await drain(pair.there.ingesting("beta", book="alpha"), progress)
    with pytest.raises(errors.WrongBook) as here:
        await pair.here.ingest(pair.books / "beta", book="alpha")

    assert str(there.value) == str(here.value).replace(str(pair.books / "beta"), "beta")
    assert progress[-1].job.status == "failed"


async def test_a_job_is_started_once_and_cancelled(pair: Pair) -> None:
    """One idempotency key is one job; a cancel answers with the job at its end."""
    order = JobOrder(book_id="alpha", folder="alpha", mode="recreate")
    started = await pair.there.jobs.start(order, key="once")
    assert (await pair.there.jobs.start(order, key="once")).job.job_id == started.job.job_id
    with pytest.raises(errors.KeyUsed):
        await pair.there.jobs.start(replace(order, mode="full"), key="once")
    cancelled_job = await pair.there.jobs.cancel(started.job.job_id, frozenset({"alpha"}))

    assert cancelled_job.job.status in ("cancelled", "completed")  # it is a small book
    assert not cancelled_job.open


async def test_calibrating_comes_to_the_same(pair: Pair) -> None:
    """Figures and parameters are the local call's; of the file there is the name."""
    covered = [
        f"What is {thing}?" for thing in "node topic service action world message gravity call task reply".split()
    ]
    foreign = [f"How is {thing} baked?" for thing in "bread cake pie rye crust salt yeast dough oven flour".split()]
    questions = [
        *(LabelledQuestion(text=text, answerable=True) for text in covered),
        *(LabelledQuestion(text=text, answerable=False) for text in foreign),
    ]
    here = await pair.here.calibrate("alpha", questions)
    there = await pair.there.calibrate("alpha", questions)

    assert (there.stored is None) == (here.stored is None)
    assert there.stored in (None, "alpha.json")
    assert repr(replace(there, stored=None)) == repr(replace(here, stored=None))  # NaN is not equal to itself
    with pytest.raises(errors.BadInput, match="10 questions"):
        await pair.there.calibrate("alpha", questions[:3])


async def test_the_doctor_finds_and_mends_the_same(pair: Pair) -> None:
    """Every finding of a local call, without the folders of the server; what was mended is found no more."""
    for mend in (False, True, False):
        here = [finding async for finding in pair.here.doctor(mend=mend)]
        there = [finding async for finding in pair.there.doctor(mend=mend)]
        assert [(finding.kind, finding.book_id, finding.mended) for finding in there] == [
            (finding.kind, finding.book_id, finding.mended) for finding in here
        ]
        assert [finding.detail for finding in there] == [
            finding.detail.replace(str(pair.books / "gone"), "PATH") for finding in here
        ]
        assert str(pair.books) not in "".join(finding.detail for finding in there)
    assert [finding.book_id for finding in there] == ["gone"]


MISTAKES = {
    "UnknownBook": lambda side: side.search("a node", book="nothing"),
    "UnknownBook of an outline": lambda side: side.outline("nothing"),
    "UnknownBook of dots": lambda side: side.outline(".."),
    "UnknownBook of a question": lambda side: side.ask(QUESTION, book="nothing"),
    "UnknownBook of no name": lambda side: side.book(""),
    "UnknownBook of a removal": lambda side: side.remove("nothing"),
    "UnknownLesson": lambda side: side.lesson(NOBODYS, book="alpha"),
    "UnknownThread": lambda side: side.threads.read(NOBODYS),
    "UnknownThread of no id": lambda side: side.threads.turns("../books"),
    "UnknownJob": lambda side: side.jobs.record(987, None),
    "BadInput of a module": lambda side: side.search("a node", scope=Scope(module="nothing")),
    "BadInput of a short text": lambda side: side.search("a"),
    "BadInput of a long question": lambda side: side.ask("a" * 1001),
    "BadInput of no question": lambda side: side.ask(" "),
    "BadInput of a thread": lambda side: side.ask(QUESTION, thread="mine"),
    "BadInput of days": lambda side: side.insights(days=0),
    "BadInput of a rating": lambda side: side.threads.rate(NOBODYS, 1, "up", reason="wrong"),
    "UnknownThread of a rating": lambda side: side.threads.rate(NOBODYS, 1, "up"),
    "BadInput of text": lambda side: side.ask("a \udcff"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_the_same_error(pair: Pair, mistake: str) -> None:
    """The class, the words and the field of a local call."""
    call = MISTAKES[mistake]
    with pytest.raises(lectern.LecternError) as here:
        await call(pair.here)
    with pytest.raises(lectern.LecternError) as there:
        await call(pair.there)

    assert type(there.value).__name__ == type(here.value).__name__ == mistake.split(maxsplit=1)[0]
    assert (str(there.value), there.value.field) == (str(here.value), here.value.field)  # type: ignore[attr-defined]  # of BadInput
    assert getattr(there.value, "known", None) == getattr(here.value, "known", None)


@pytest.mark.parametrize(
    ("mistake", "field"),
    [
        (lambda there: there.search("a node", limit=21), "limit"),
        (lambda there: there.ask(QUESTION, top_k=11), "top_k"),
        (lambda there: there.ask(QUESTION, scope=Scope(module="\udcff")), "module_filter"),
        (lambda there: there.ask("And in Python?", history=[Exchange(question="q", answer="a")]), "history"),
        (lambda there: there.ingest("gamma"), "book_id"),
        (lambda there: there.ingest("/etc", book="gamma"), "source"),
        (lambda there: there.threads.list(cursor="???"), "cursor"),
    ],
)
async def test_what_only_a_server_refuses_names_the_field(pair: Pair, mistake: Any, field: str) -> None:
    """Narrower limits of HTTP come through as they are, with advice."""
    with pytest.raises(errors.BadInput) as refused:
        await mistake(pair.there)

    assert refused.value.field == field


async def test_a_key_opens_what_it_may(site: Site) -> None:
    """A wrong one and none are Unauthorised, one without the right is Forbidden; a right one reads."""
    for key in (None, "lk_wrong"):
        async with connect(site.address, key) as there:
            with pytest.raises(errors.Unauthorised, match="good key"):
                await there.books()
            with pytest.raises(errors.Unauthorised):
                await drain(there.stream(QUESTION), [])
    async with connect(f"{site.address}/", site.keys["reading"]) as there:
        assert len(await there.books()) == 3
        with pytest.raises(errors.Forbidden, match="'chat'"):
            await there.ask(QUESTION)
        with pytest.raises(errors.Forbidden, match="'admin'"):
            await anext(there.doctor())
        with pytest.raises(errors.Forbidden, match="'admin'"):
            await there.insights()


@pytest.mark.parametrize("address", ["127.0.0.1:8420", "ftp://host", "", "http://", "http://user:word@host", "\x00"])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    """Before anything is sent; so is a key that no header can hold."""
    with pytest.raises(errors.BadInput) as refused:
        async with connect(address):
            pass
    assert refused.value.field == "url"
    with pytest.raises(errors.BadInput) as refused:
        async with connect("http://localhost", "lk_ключ"):
            pass
    assert refused.value.field == "key"


async def test_no_proxy_of_the_environment_gets_the_key(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is asked itself, whatever the environment says."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with connect(site.address, site.keys["reading"]) as there:
        assert await there.books()
