"""A PostgreSQL that is stopped or does not answer: every request is a 503 that says when to come back, from the first
one on; nothing hangs, no traceback is logged, and everything goes on when it is back."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from lectern.store import database
from tests.answering.scripted import write_book
from tests.databases import Postgres, own_postgres
from tests.served import LECTERN, lectern, serving

THREAD = str(uuid.UUID(int=4, version=4))
REQUESTS = (  # those that need the database
    ("GET", "/books", None),
    ("GET", "/books/robots", None),
    ("GET", "/books/robots/outline", None),
    ("GET", "/books/robots/insights", None),
    ("POST", "/search", {"text": "node", "book_id": "robots"}),
    ("POST", "/chat/run", {"message": "What is a node?"}),
    ("POST", "/chat/stream", {"message": "What is a node?"}),
    ("GET", "/threads", None),
    ("GET", f"/threads/{THREAD}", None),
    ("DELETE", f"/threads/{THREAD}", None),
    ("GET", "/ingestions", None),
    ("POST", "/books/robots/ingestions", {}),
    ("DELETE", "/books/robots", None),
    ("GET", "/health/ready", None),
)
MAX_SECONDS = 2 * database.CONNECT_SECONDS + database.STATEMENT_SECONDS + 30  # for a busy machine


@dataclass(frozen=True)
class Site:
    """A server on a PostgreSQL of its own, with its log."""

    database: Postgres
    web: httpx.Client
    log: Path

    def lines(self) -> list[dict[str, object]]:
        """The log's JSON lines."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def wait_until_ready(self) -> None:
        """Wait until the server answers again."""
        end = time.monotonic() + 60
        while self.web.get("/health/ready").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.1)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A served book; its records are in PostgreSQL."""
    with own_postgres() as postgres:
        home = folder / "home"
        log = folder / "log"
        env = {"DATABASE_URL": postgres.address, "LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}
        env = {**os.environ, **env, "LECTERN_LOG_FORMAT": "json"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DATABASE_URL", postgres.address)
            lectern("ingest", str(write_book(folder / "robots")), "--book", "robots", home=home)
        with (
            log.open("w") as stderr,
            serving([LECTERN, "serve", "--port", "0"], env=env, stderr=stderr) as address,
            httpx.Client(base_url=address, timeout=120) as web,
        ):
            yield Site(postgres, web, log)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for the module."""
    with site(tmp_path_factory.mktemp("outages")) as here:
        yield here


def assert_told_to_come_back(response: httpx.Response) -> None:
    """A 503 that says when."""
    assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
    assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("path", ["/books/robots/outline", "/threads", "/health/ready"])
def test_the_first_request_to_a_stopped_database_is_told_to_come_back(served: Site, path: str) -> None:
    """Its connection is one that worked a moment ago."""
    served.wait_until_ready()
    served.web.get(path)
    served.database.stop()
    try:
        response = served.web.get(path)
    finally:
        served.database.start()

    assert_told_to_come_back(response)
    assert "Traceback" not in served.log.read_text()


def test_every_request_to_a_stopped_database_is_told_to_come_back(served: Site) -> None:
    """Whatever is asked for; the process itself is alive."""
    served.wait_until_ready()
    served.database.stop()
    try:
        responses = [served.web.request(method, path, json=body) for method, path, body in REQUESTS]
        live = served.web.get("/health/live")
    finally:
        served.database.start()

    for response in responses:
        assert_told_to_come_back(response)
    assert live.status_code == 200
    assert "Traceback" not in served.log.read_text()


def test_it_goes_on_when_the_database_is_back(served: Site) -> None:
    """A question is answered, and the failed calls are in the log and in the metrics."""
    served.wait_until_ready()
    served.database.stop()
    try:
        assert served.web.get("/books/robots/outline").status_code == 503
    finally:
        served.database.start()
    served.wait_until_ready()
    assert served.web.post("/chat/run", json={"message": "What is a node?"}).status_code == 200

    failures = [line for line in served.lines() if line["event"] == "dependency.failed"]
    metrics = served.web.get("/metrics").text
    assert {line["dependency"] for line in failures} == {"database"}
    assert all(line["error"] and line["level"] == "warning" for line in failures)
    assert f'lectern_dependency_errors_total{{dependency="database"}} {len(failures)}.0' in metrics
    assert 'lectern_dependency_calls_total{dependency="database"}' in metrics
    assert 'lectern_dependency_seconds_count{dependency="database"}' in metrics


@pytest.mark.parametrize("path", ["/books/robots/outline", "/health/ready"])
def test_a_database_that_hangs_holds_nobody_for_long(served: Site, path: str) -> None:
    """It accepts connections and answers nothing: the request ends as a 503 within its time-outs."""
    served.wait_until_ready()
    served.database.freeze()
    try:
        start = time.monotonic()
        response = served.web.get(path)
        seconds = time.monotonic() - start
    finally:
        served.database.thaw()

    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert seconds < MAX_SECONDS
    served.wait_until_ready()
    assert "Traceback" not in served.log.read_text()
