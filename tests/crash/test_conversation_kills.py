"""Conversations survive: kills of the server at any moment, and two processes on one PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.answering.scripted import write_book
from tests.databases import new_postgres_database
from tests.served import LECTERN, serving

QUESTIONS = ("What is a node?", "What is a service?", "How fast is the camera?", "Which wine goes with duck?")


def test_kills_lose_no_turn_that_was_acknowledged(small_home: Path, tmp_path: Path, request: Any, seed: int) -> None:
    """Killed at random moments under load: every reply that a client got is in its thread, word for word; every
    thread reads, alternates and goes on."""
    home = tmp_path / "home"
    shutil.copytree(small_home, home)
    rng, acknowledged = random.Random(11 + seed), {}
    threads = [str(uuid.uuid4()) for _ in range(3)]
    for _ in range(int(request.config.getoption("--conversation-kills"))):
        process, server = _start(home)
        asyncio.run(_converse_until_killed(server, process, threads, acknowledged, rng.uniform(0, 0.7)))
    process, server = _start(home)
    try:
        assert acknowledged
        _check(server, threads, acknowledged)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def _start(home: Path) -> tuple[subprocess.Popen[str], str]:
    env = {**os.environ, "LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0", "AGENT_MAX_TURNS": "0"}
    process = subprocess.Popen([LECTERN, "serve", "--port", "0"], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    match = re.search(r"http://\S+", process.stdout.readline())
    assert match
    return process, match.group().rstrip("/")


async def _converse_until_killed(
    server: str, process: subprocess.Popen[str], threads: list[str], acknowledged: dict[str, Any], after: float
) -> None:
    async with httpx.AsyncClient(timeout=120) as client:

        async def converse(thread_id: str) -> None:
            with suppress(httpx.HTTPError):
                for number in range(10_000):
                    body = {"message": QUESTIONS[number % len(QUESTIONS)], "session_id": thread_id}
                    key = str(uuid.uuid4())
                    response = await client.post(f"{server}/chat/run", json=body, headers={"Idempotency-Key": key})
                    assert response.status_code == 200, response.text
                    acknowledged[key] = response.json()

        conversations = [asyncio.create_task(converse(thread_id)) for thread_id in threads]
        before = len(acknowledged)
        while len(acknowledged) == before and not all(conversation.done() for conversation in conversations):  # noqa: ASYNC110  # models load
            await asyncio.sleep(0.02)
        await asyncio.sleep(after)
        process.kill()
        process.communicate()
        await asyncio.gather(*conversations)


def _check(server: str, threads: list[str], acknowledged: dict[str, Any]) -> None:
    stored_replies: list[Any] = []
    for thread_id in threads:
        whole = httpx.get(f"{server}/threads/{thread_id}/export", timeout=120)
        if whole.status_code == 404:
            continue
        thread = whole.json()
        assert [message["seq"] for message in thread["messages"]] == list(range(1, 2 * thread["turn_count"] + 1))
        assert [message["role"] for message in thread["messages"]] == ["user", "assistant"] * thread["turn_count"]
        stored_replies += [json.dumps(turn["reply"], sort_keys=True) for turn in thread["turns"]]
        body = {"message": QUESTIONS[0], "session_id": thread_id}
        assert httpx.post(f"{server}/chat/run", json=body, timeout=120).status_code == 200
    lost = [reply for reply in acknowledged.values() if json.dumps(reply, sort_keys=True) not in set(stored_replies)]
    assert not lost
    assert len(set(stored_replies)) == len(stored_replies)
    for key, reply in list(acknowledged.items())[-20:]:  # the same key again, after a restart
        body = {"message": reply_question(reply), "session_id": reply["session_id"]}
        again = httpx.post(f"{server}/chat/run", json=body, headers={"Idempotency-Key": key}, timeout=120)
        assert again.json() == reply


def reply_question(reply: dict[str, Any]) -> str:
    """The question behind a reply: the one whose words it was searched with."""
    return next(question for question in QUESTIONS if reply["standalone"].startswith(question.rstrip("?")[:12]))


async def test_two_processes_take_turns_in_one_thread(
    tmp_path: Path, postgres_address: str, request: pytest.FixtureRequest
) -> None:
    """Many turns at once on one thread, half of them on each of two servers: none lost, none doubled, each question
    next to its answer, and each client got what the thread holds."""
    url = (await new_postgres_database(postgres_address)).render_as_string(hide_password=False)
    shared = {**os.environ, "DATABASE_URL": url, "LECTERN_RATE_LIMIT": "0"}
    shared |= {"AGENT_MAX_TURNS": "0", "LECTERN_THREAD_WAIT": "600"}
    first, second = tmp_path / "one", tmp_path / "two"
    book = write_book(tmp_path / "robots")
    command = [LECTERN, "ingest", str(book), "--book", "robots"]
    ingest = await asyncio.to_thread(
        subprocess.run, command, env={**shared, "LECTERN_HOME": str(first)}, capture_output=True, text=True, check=False
    )
    assert ingest.returncode == 0, ingest.stderr
    shutil.copytree(first, second)  # the embedded index has one owner, so each process has its own copy
    turns, thread_id = int(request.config.getoption("--turns")), str(uuid.uuid4())
    serve = [LECTERN, "serve", "--port", "0"]
    with (
        serving(serve, env={**shared, "LECTERN_HOME": str(first)}) as first_server,
        serving(serve, env={**shared, "LECTERN_HOME": str(second)}) as two,
    ):
        async with httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=50)) as client:

            async def ask(number: int) -> dict[str, Any]:
                body = {"message": f"What is node number {number}?", "session_id": thread_id}
                response = await client.post(f"{(first_server, two)[number % 2]}/chat/run", json=body)
                assert response.status_code == 200, response.text
                return dict(response.json())

            replies = await asyncio.gather(*(ask(number) for number in range(turns)))
            thread = (await client.get(f"{two}/threads/{thread_id}/export")).json()

    assert thread["turn_count"] == turns
    assert [message["seq"] for message in thread["messages"]] == list(range(1, 2 * turns + 1))
    questions = [turn["question"] for turn in thread["turns"]]
    assert sorted(questions) == sorted(f"What is node number {number}?" for number in range(turns))
    replies_by_question = {f"What is node number {number}?": reply for number, reply in enumerate(replies)}
    for place, turn in enumerate(thread["turns"]):
        assert turn["reply"] == replies_by_question[turn["question"]]
        assert thread["messages"][2 * place]["content"] == turn["question"]
        assert thread["messages"][2 * place + 1]["content"] == turn["reply"]["response"]
