"""RELIABILITY T6: what becomes of a key's conversations, answers and ingestions when it is taken back or deleted."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from lectern.app.keys import delete_key, revoke_key
from lectern.app.threads import OwnThreads
from lectern.domain.errors import Cancelled, Unauthorised
from lectern.domain.jobs import JobOrder
from lectern.domain.keys import Key, KeyRequest
from lectern.domain.threads import LOCAL_OWNER
from lectern.jobs.runner import JobRules, Jobs
from lectern.store.database import open_database
from lectern.store.jobs import SqlJobs
from lectern.store.keys import SqlKeys
from tests.answering.scripted import KEY, open_scripted
from tests.databases import new_postgres_database
from tests.fakeai import FakeAI, Step, fake_ai, saying
from tests.served import LECTERN, lectern, serving
from tests.sse import events
from tests.threads.test_converse import NODE, request

QUESTION = "What is a node, canary?"
ORIGIN = "https://example.org"
MAX_WAIT_SECONDS = 60.0  # for what must come; other tests share the machine
NEVER = 600.0  # seconds that a model takes which nobody waits for
TABLES = ("conversation_threads", "turn_log", "thread_leases", "job_keys")


class Desk:
    """A server whose model may be slow, and keys for it."""

    def __init__(self, address: str, home: Path, ai: FakeAI) -> None:
        self.address, self.home, self.ai = address, home, ai
        self.quick()

    def quick(self) -> None:
        """Answers come at once."""
        self.ai.script(then=Step(say=saying("A node is a process that computes. [1]")))

    def slow(self) -> None:
        """Nobody lives to see them."""
        self.ai.script(then=Step(say=saying("A node is a process that computes. [1]"), delay=NEVER))

    def key(self, *options: str) -> tuple[str, dict[str, str]]:
        """A new key: its id and what is sent with requests."""
        new_key = json.loads(lectern("keys", "create", "--name", "t", *options, "--json", home=self.home).stdout)
        return new_key["key_id"], {"X-API-Key": new_key["key"]}

    def ask(self, headers: dict[str, str], **body: object) -> httpx.Response:
        """A question, to its reply."""
        return httpx.post(f"{self.address}/chat/run", json={"message": QUESTION, **body}, headers=headers, timeout=120)

    def keys(self, *arguments: str) -> dict:
        """`lectern keys`, as a program reads it."""
        return json.loads(lectern("keys", *arguments, "--json", home=self.home).stdout)

    def rows(self) -> dict[str, int]:
        """How much of anybody's is kept."""
        with sqlite3.connect(f"file:{self.home / 'lectern.db'}?mode=ro", uri=True) as database:
            whole = (*TABLES, "messages", "turns", "archived_messages", "archived_turns")
            return {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in whole}


@pytest.fixture(scope="module")
def guarded_home(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a book and a key."""
    home = Path(shutil.copytree(small_home, tmp_path_factory.mktemp("guarded") / "home"))
    lectern("keys", "create", "--name", "always", home=home)
    return home


@pytest.fixture
def desk(guarded_home: Path, tmp_path: Path) -> Iterator[Desk]:
    """The server; it has a key already, so that no test switches authentication on or off."""
    home = Path(shutil.copytree(guarded_home, tmp_path / "home"))
    with fake_ai() as ai:
        settings = {"LECTERN_HOME": str(home), "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1"}
        with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
            yield Desk(address, home, ai)


def test_an_answer_under_way_ends_with_its_key(desk: Desk) -> None:
    """Whoever follows is told and gets no more, the model is left alone, nothing is kept; other keys go on."""
    key_id, headers = desk.key()
    _, second_key = desk.key()
    desk.slow()
    received: list[str] = []

    def follow() -> None:
        body = {"message": "What is a node?"}
        with httpx.stream(
            "POST", f"{desk.address}/chat/stream", json=body, headers=headers, timeout=2 * MAX_WAIT_SECONDS
        ) as stream:
            received.extend(event.name for event in events(stream.iter_lines()))

    following = threading.Thread(target=follow)
    following.start()
    _until(lambda: desk.ai.received)  # the model is at work
    desk.keys("revoke", key_id)
    following.join(MAX_WAIT_SECONDS)

    assert not following.is_alive()
    assert received[-1] == "error"
    assert desk.ask(headers).status_code == 401
    assert desk.rows()["messages"] == 0
    desk.quick()
    assert desk.ask(second_key).status_code == 200


def test_a_revoked_keys_conversations_stay_until_the_key_is_deleted(desk: Desk) -> None:
    """Revoking alone deletes nothing that was said; deleting leaves no row of it, in the archive either, and says how
    many conversations went. Those of others stay."""
    key_id, headers = desk.key()
    _, second_key = desk.key()
    session = str(uuid.uuid4())
    for _ in range(2):
        assert desk.ask(headers, session_id=session).status_code == 200
    assert desk.ask(headers).status_code == 200
    assert desk.ask(second_key).status_code == 200
    desk.keys("revoke", key_id)
    rows_before = desk.rows()
    result = desk.keys("delete", key_id, "--yes")

    assert (rows_before["conversation_threads"], rows_before["messages"]) == (3, 8)
    assert result == {"key_id": key_id, "name": "t", "threads_deleted": 2}
    rows_after = desk.rows()
    assert (
        rows_after["conversation_threads"],
        rows_after["messages"],
        rows_after["turns"],
        rows_after["turn_log"],
    ) == (1, 2, 1, 1)
    assert key_id not in json.dumps(desk.keys("list"))
    assert desk.ask(headers).status_code == 401
    again = lectern("keys", "delete", key_id, "--yes", home=desk.home, check=False)
    assert (again.returncode, "lectern keys list" in again.stderr) == (2, True)


def test_a_reader_goes_with_the_key(desk: Desk) -> None:
    """A reader's token is worth nothing afterwards, and what readers said is deleted with the key."""
    key_id, headers = desk.key("--publishable", "--book", "robots", "--origin", ORIGIN)
    headers["Origin"] = ORIGIN
    token = httpx.post(f"{desk.address}/readers", headers=headers, timeout=120).json()["reader_token"]
    headers["X-Reader-Token"] = token
    _, second_key = desk.key("--publishable", "--book", "robots", "--origin", ORIGIN)
    assert desk.ask(headers).status_code == 200
    result = desk.keys("delete", key_id, "--yes")

    assert result["threads_deleted"] == 1
    assert desk.rows() == dict.fromkeys(desk.rows(), 0)
    assert desk.ask(headers).status_code == 401
    foreign = {**second_key, "Origin": ORIGIN, "X-Reader-Token": token}
    assert httpx.get(f"{desk.address}/threads", headers=foreign, timeout=120).status_code == 401


def test_deleting_asks_first(desk: Desk) -> None:
    """Without a yes nothing is touched."""
    key_id, headers = desk.key()
    refused = lectern("keys", "delete", key_id, home=desk.home, check=False, typed="n\n")

    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert desk.ask(headers).status_code == 200


def test_a_request_that_was_let_in_before_begins_nothing(desk: Desk) -> None:
    """A body that is still on its way when the key is revoked is read, and refused."""
    key_id, headers = desk.key()
    target, body = urlsplit(desk.address), json.dumps({"message": QUESTION}).encode()
    request_headers = {"Host": "localhost", "Content-Type": "application/json", **headers}
    head = "\r\n".join(["POST /chat/run HTTP/1.1", *(f"{name}: {value}" for name, value in request_headers.items())])
    with socket.create_connection((str(target.hostname), int(target.port or 0))) as slow:
        slow.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:5])
        _until(lambda: desk.keys("list")[-1]["last_used_at"] is not None)
        desk.keys("delete", key_id, "--yes")
        slow.sendall(body[5:])
        slow.settimeout(30)
        assert slow.recv(65536).startswith(b"HTTP/1.1 401 ")

    assert desk.rows() == dict.fromkeys(desk.rows(), 0)


def test_the_door_stays_shut_when_the_last_key_is_deleted(desk: Desk) -> None:
    """No key is left, and all the same nobody gets in without one, after a restart either."""
    for key in desk.keys("list"):
        desk.keys("delete", key["key_id"], "--yes")

    assert desk.keys("list") == []
    assert httpx.get(f"{desk.address}/books", timeout=120).status_code == 401


async def test_a_job_ends_with_the_key_that_began_it(tmp_path: Path) -> None:
    """It is cancelled, begins no other, and its idempotency keys go with the key; a job of another's goes on."""
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai) as opened:
            key = await _key(opened.app.keys)
            jobs = Jobs(opened.app.ingest_deps, SqlJobs(opened.app.engine), JobRules(serving=True))
            order = JobOrder(book_id="robots", folder=(await opened.books())[0].source, mode="recreate")
            own_job = await jobs.start(order, owner=key.owner, key="k")
            other_job = await jobs.start(replace(order, book_id="other"), owner="somebody")
            await delete_key(key.key_id, opened.app.keys, opened.app.runs, jobs)

            assert (await jobs.record(own_job.job.job_id, None)).job.status == "cancelled"
            with pytest.raises(Unauthorised):
                await jobs.start(order, owner=key.owner)
            assert await jobs.records.keyed(key.owner, "k") is None
            live = jobs.live(other_job.job.job_id)
            assert live is not None
            await live.over()
            assert live.job.status == "completed"
            await jobs.close()


async def test_a_key_that_is_deleted_elsewhere_leaves_nothing(tmp_path: Path, postgres_address: str) -> None:
    """Two processes: what one answers when the other deletes the key is ended soon, what waits behind it begins
    nothing, and nothing is resurrected; the threads of readers and of nobody else go."""
    url = await new_postgres_database(postgres_address)
    with fake_ai() as ai:
        ai.script(then=Step(say=saying(NODE)))
        async with (
            open_scripted(tmp_path, ai) as opened,
            open_database(url) as first_database,
            open_database(url) as second_database,
        ):
            here, there, keys = (
                opened.app.runs_on(first_database),
                opened.app.runs_on(second_database),
                SqlKeys(second_database),
            )
            jobs = Jobs(opened.app.ingest_deps, SqlJobs(second_database), JobRules(shared=True))
            key = await _key(keys)
            first = request(owner=key.owner)
            for turn_request in (
                first,
                request(owner=f"{key.owner}/reader"),
                request(),
                request(owner=f"{key.owner}x"),
            ):
                await here.start(turn_request).reply()
            ai.script(then=Step(say=saying(NODE), delay=NEVER))
            busy = here.start(request(owner=key.owner, thread_id=first.thread_id))
            await busy.wait_until_begun()
            waiting = here.start(request(owner=key.owner, thread_id=first.thread_id))
            _, deleted = await delete_key(key.key_id, keys, there, jobs)
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                with pytest.raises(Cancelled):
                    await busy.reply()
                with pytest.raises(Unauthorised):
                    await waiting.reply()

            assert deleted == 2
            for owner, expected_count in (
                (key.owner, 0),
                (f"{key.owner}/reader", 0),
                (LOCAL_OWNER, 1),
                (f"{key.owner}x", 1),
            ):
                assert len((await OwnThreads(there.conversations.threads, owner).list()).heads) == expected_count
            assert await there.conversations.log.run(key.owner, busy.request.run_id) is None
            await here.close(0)
            await there.close(0)


async def test_revoking_twice_changes_nothing(tmp_path: Path) -> None:
    """A second word is not a mistake."""
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai) as opened:
            key = await _key(opened.app.keys)
            first = await revoke_key(key.key_id, opened.app.keys, opened.app.runs, opened.jobs)

            assert await revoke_key(key.key_id, opened.app.keys, opened.app.runs, opened.jobs) == first


async def _key(keys: SqlKeys) -> Key:
    return (await keys.create(KeyRequest(name="t"))).key


def _until(holds) -> None:
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
