"""The deployment as processes: both servers give the same answers, and when any one process is killed under load
nothing is lost, nothing is wrong, and a reader repeats a request at most once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.scaling.readers import Reader, Reply, ask_all
from tests.scaling.topology import ROLES, SERVERS, Topology, topology, wait_until

QUESTIONS = (
    "What is a node?",
    "What is a URDF file?",
    "Which wine goes well with roast duck?",
)
READERS = 6
KILLED_AFTER = 6  # answers, of 18
REPLICATED = ("api-1", "api-2", "qdrant-1", "qdrant-2", "qdrant-3", "redis")  # stay down until the load has ended
BOOK = "physical-ai-robotics"
OUTLINES = 'lectern_http_requests_total{method="GET",route="/books/{book_id}/outline"'


@pytest.fixture(scope="module")
def running() -> Iterator[Topology]:
    """The topology with the sample book."""
    with topology() as started:
        yield started


@pytest.fixture(scope="module")
def expected(running: Topology) -> list[Reply]:
    """What a reader gets whom nothing disturbs."""
    reader = Reader(proxy=running.proxy, key=running.key, streams=False)
    for question in QUESTIONS:
        reader.ask(question)
    assert (len(reader.replies), reader.repeated) == (len(QUESTIONS), [])
    return reader.replies


def call(running: Topology, method: str, path: str, base: str | None = None, **arguments: object) -> httpx.Response:
    """A request of the operator."""
    return httpx.request(
        method, f"{base or running.proxy}{path}", headers={"X-API-Key": running.key}, timeout=120, **arguments
    )  # type: ignore[arg-type]  # httpx's many


def proxy_uses_both(running: Topology) -> bool:
    """Whether the proxy sends requests to both servers. It leaves one out for some seconds after it failed, and no
    other may be killed then: that would be two losses at once."""

    def answered() -> list[float]:
        texts = [call(running, "GET", "/metrics", running.server(name)).text for name in SERVERS]
        return [sum(float(line.split()[-1]) for line in text.splitlines() if OUTLINES in line) for text in texts]

    before = answered()
    for _ in range(4):
        call(running, "GET", f"/books/{BOOK}/outline")
    return all(later > earlier for earlier, later in zip(before, answered(), strict=True))


def questions_of(running: Topology, thread_id: str) -> list[str]:
    """The questions of a stored conversation, each of which has its answer behind it."""
    messages = call(running, "GET", f"/threads/{thread_id}").json()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2)
    return [message["content"] for message in messages[::2]]


def test_both_servers_and_the_proxy_give_the_same_answers(running: Topology, expected: list[Reply]) -> None:
    """One book, one index: whichever server is asked, whole or as a stream."""
    for base in (*map(running.server, SERVERS), running.proxy):
        for streams in (False, True):
            reader = Reader(proxy=base, key=running.key, streams=streams)
            for question in QUESTIONS:
                reader.ask(question)
            assert reader.replies == expected
            assert questions_of(running, reader.thread_id) == list(QUESTIONS)


def test_the_servers_count_requests_together_and_trust_the_proxy(running: Topology) -> None:
    """What one server counts the other knows, and the proxy's metrics are nobody's."""
    remaining = [
        int(call(running, "GET", "/books", running.server(name)).headers["RateLimit-Remaining"])
        for name in (*SERVERS, *SERVERS)
    ]

    assert remaining == list(range(remaining[0], remaining[0] - 4, -1))
    assert call(running, "GET", "/metrics").status_code == 404
    assert "lectern_info" in call(running, "GET", "/metrics", running.server("api-1")).text


@pytest.mark.parametrize("role", ROLES)
def test_any_one_process_may_be_killed_under_load(
    running: Topology, expected: list[Reply], role: str, record_property: Callable[[str, object], None]
) -> None:
    """Every question is answered as without the kill, after at most one repetition; the conversations have each turn
    once; the ingestion that ran meanwhile ends well; and the index holds what it held."""
    chunks = call(running, "GET", f"/books/{BOOK}/chunks").text
    job = call(running, "POST", f"/books/{BOOK}/ingestions", json={"mode": "full"}).json()["job_id"]

    def kill() -> None:
        running.kill(role)
        if role not in REPLICATED:
            running.restart(role)

    readers = [Reader(proxy=running.proxy, key=running.key, streams=number % 2 == 1) for number in range(READERS)]
    ask_all(readers, QUESTIONS, KILLED_AFTER, kill)
    if role in REPLICATED:
        running.restart(role)
    wait_until(running.is_ready, f"the servers are not ready after {role} came back")
    wait_until(lambda: proxy_uses_both(running), f"the proxy leaves a server out after {role} came back")

    assert [reader.failed for reader in readers] == [[]] * READERS
    assert [reader.replies for reader in readers] == [expected] * READERS
    assert [questions_of(running, reader.thread_id) for reader in readers] == [list(QUESTIONS)] * READERS
    wait_until(lambda: _job(running, job)["status"] not in ("queued", "running"), f"job {job} did not end")
    assert (_job(running, job)["status"], _job(running, job)["error_message"]) == ("completed", None)
    assert call(running, "GET", f"/books/{BOOK}/chunks").text == chunks
    record_property("repeated", sum(len(reader.repeated) for reader in readers))


def _job(running: Topology, job: int) -> dict[str, object]:
    return dict(call(running, "GET", f"/ingestions/{job}").json())


def test_a_conversation_goes_on_at_another_server(running: Topology, expected: list[Reply]) -> None:
    """A turn at one server is context and history at the other."""
    reader = Reader(proxy=running.server("api-1"), key=running.key, streams=False)
    reader.thread_id = str(uuid.uuid4())
    reader.ask(QUESTIONS[0])
    reader.proxy = running.server("api-2")
    reader.ask(QUESTIONS[1])

    assert reader.replies == expected[:2]
    assert questions_of(running, reader.thread_id) == list(QUESTIONS[:2])
