"""Jobs over HTTP and from the terminal, against a real server; then the same server killed in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.books import Author
from tests.served import LECTERN, lectern, serving
from tests.sse import Event, events

TIMES = {"created_at", "updated_at", "version", "embedded_at"}
MAX_WAIT_SECONDS = 60  # other tests share the machine


class Site:
    """A server, and the folder that books may be read from."""

    def __init__(self, address: str, home: Path, books: Path) -> None:
        self.address, self.home, self.books = address, home, books
        self.web = httpx.Client(base_url=address, timeout=MAX_WAIT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.web.close()

    def start(self, book: str, **body: object) -> httpx.Response:
        """Ask for an ingestion."""
        headers = body.pop("headers", {})
        return self.web.post(f"/books/{book}/ingestions", json=body, headers=headers)

    def follow(
        self, job_id: int, last: str | None = None, most: int = 10_000, *, until_indexed: bool = False
    ) -> list[Event]:
        """A job's events, to its end, to a number of them, or until lessons are in the index."""
        headers = {"Last-Event-ID": last} if last else {}
        received_events: list[Event] = []
        with self.web.stream("GET", f"/ingestions/{job_id}/events", headers=headers) as stream:
            assert stream.status_code == 200, stream.read()
            for event in events(stream.iter_lines()):
                received_events.append(event)
                indexed = event.name == "progress" and event.body["done"]
                if len(received_events) == most or (until_indexed and indexed):
                    break
        return received_events

    def wait_for_end(self, job_id: int) -> dict:
        """The job once it has ended."""
        self.follow(job_id)
        return self.web.get(f"/ingestions/{job_id}").json()


def environment(home: Path, books: Path) -> dict[str, str]:
    """What a server is started with."""
    settings = {"LECTERN_HOME": str(home), "LECTERN_BOOKS": str(books), "LECTERN_RATE_LIMIT": "0"}
    return {**os.environ, **settings, "LECTERN_SHUTDOWN_DELAY": "0"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for these tests, with a book that is there to be ingested."""
    folder = tmp_path_factory.mktemp("jobs")
    for name, seed in (("robots", 1), ("arms", 2)):
        Author(folder / "books" / name, seed)
    home, books = folder / "home", folder / "books"
    (books / "zoo").mkdir()
    (books / "zoo" / "zebra.md").write_text("# Zebras\n\nA zebra is no robot.\n", encoding="utf-8")
    command = [LECTERN, "serve", "--port", "0"]
    with serving(command, env=environment(home, books)) as address, Site(address, home, books) as site:
        yield site


def test_a_book_is_planned_ingested_and_followed(site: Site) -> None:
    """Dry run, start, every event in order to the last, the report; and readers find it."""
    plan = site.start("robots", source="robots", dry_run=True)
    assert plan.status_code == 200
    assert len(plan.json()["new"]) == 7
    assert plan.json()["chunks"]["add"] > 0
    assert site.web.get("/ingestions").json()["jobs"] == []

    started = site.start("robots", source="robots")
    job = started.json()
    assert (started.status_code, started.headers["location"]) == (202, f"/ingestions/{job['job_id']}")
    assert job["status"] == "queued"
    assert job["started_at"] is None
    events = site.follow(job["job_id"])
    assert [event.name for event in events] == ["planned", *["progress"] * (len(events) - 2), "finished"]
    assert events[0].body["files"] == {"new": 7, "modified": 0, "moved": 0, "deleted": 0, "unchanged": 0}
    job_report = site.web.get(f"/ingestions/{job['job_id']}").json()
    assert events[-1].body["job"] == job_report
    assert (job_report["status"], job_report["files_processed"], job_report["chunks_created"]) == (
        "completed",
        7,
        plan.json()["chunks"]["add"],
    )
    assert site.web.post("/search", json={"text": "robot sensor"}).json()["book_id"] == "robots"


def test_a_follower_comes_back_by_the_last_events_id(site: Site) -> None:
    """After any event the rest follows, the same; after the last the last; an id of another attempt begins anew."""
    job_id = site.start("robots", mode="full").json()["job_id"]
    whole = site.follow(job_id)

    for at, event in enumerate(whole[:-1]):
        assert site.follow(job_id, event.id) == whole[at + 1 :]
    assert site.follow(job_id, whole[-1].id) == whole[-1:]
    attempt = whole[0].id.partition("-")[0]
    for stranger in ("9-1", "1-1", "x", f"{attempt}-", "-", f"{attempt}-²", f"{attempt}-99999"):
        assert site.follow(job_id, stranger.encode()) == whole  # type: ignore[arg-type]  # httpx takes bytes


def test_a_source_outside_is_refused_without_a_word_about_the_machine(site: Site) -> None:
    """422 naming the field, in the caller's own words; a new book needs a source."""
    for source in ("/etc", "../..", str(site.home), "none", "robots/../../home"):
        refused = site.start("new", source=source)
        assert refused.status_code == 422
        body = refused.json()
        assert (refused.headers["content-type"], body["field"]) == ("application/problem+json", "source")
        assert str(site.books.parent) not in body["detail"].replace(repr(source), "")
    assert site.start("new").json()["field"] == "source"
    assert site.start("NoSlug", source="robots").json()["field"] == "book_id"
    assert site.start("robots", sauce="robots").status_code == 422


def test_the_wrong_folder_fails_the_job_and_says_so(site: Site) -> None:
    """Another book's folder under this name: the job is failed, its last event is an error, nothing is changed."""
    job_id = site.start("robots", source="zoo").json()["job_id"]
    last = site.follow(job_id)[-1]
    job = site.wait_for_end(job_id)

    assert (last.name, job["status"]) == ("error", "failed")
    assert last.body["detail"] == job["error_message"]
    assert "shares no file" in job["error_message"]
    assert site.start("robots", source="zoo", dry_run=True).status_code == 422


def test_idempotency_and_conflicts(site: Site) -> None:
    """One key, one job; other words under it are refused; while a job runs another request on the book is a 409."""
    headers = {"Idempotency-Key": "once"}
    first = site.start("arms", source="arms", headers=headers).json()
    second_job = site.start("arms", source="arms", mode="recreate")
    again = site.start("arms", source="arms", headers=headers)

    assert (again.status_code, again.json()["job_id"]) == (202, first["job_id"])
    mismatch = site.start("arms", source="arms", mode="full", headers=headers)
    assert (mismatch.status_code, mismatch.json()["field"]) == (422, "Idempotency-Key")
    assert second_job.status_code == 409
    assert f"job {first['job_id']} " in second_job.json()["detail"]
    assert site.wait_for_end(first["job_id"])["status"] == "completed"
    assert site.start("arms", source="arms", headers=headers).json()["job_id"] == first["job_id"]


def test_a_cancelled_job_stays_cancelled(site: Site) -> None:
    """Cancel answers with the ended job; a second one, and one after the end, change nothing."""
    job_id = site.start("robots", mode="recreate").json()["job_id"]
    cancelled = site.web.post(f"/ingestions/{job_id}/cancel")
    job = cancelled.json()

    assert (cancelled.status_code, job["status"]) == (200, "cancelled")
    assert site.web.post(f"/ingestions/{job_id}/cancel").json() == job
    assert site.follow(job_id)[-1].body["job"]["status"] == "cancelled"
    assert site.wait_for_end(site.start("robots").json()["job_id"])["status"] == "completed"


def test_lists_are_paged_and_unknown_jobs_unknown(site: Site) -> None:
    """Newest first, page by page without gap; of one book on request; 404 and 422 for what is not there."""
    numbers, cursor = [], None
    while True:
        page = site.web.get("/ingestions", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        numbers += [job["job_id"] for job in page["jobs"]]
        if (cursor := page["next_cursor"]) is None:
            break

    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == numbers[0]
    arms = site.web.get("/ingestions", params={"book_id": "arms", "limit": 100}).json()["jobs"]
    assert {job["book_id"] for job in arms} == {"arms"}
    for path in ("/ingestions/99999", "/ingestions/99999/events"):
        assert site.web.get(path).status_code == 404
    assert site.web.post("/ingestions/99999/cancel").status_code == 404
    for query in ("cursor=x", "cursor=99999999999", "limit=0"):
        assert site.web.get(f"/ingestions?{query}").status_code == 422
    assert site.web.get("/ingestions/0").status_code == 422


def test_the_terminal_sees_and_starts_the_same_jobs(site: Site) -> None:
    """`lectern ingest` through the server is a job like any other; `jobs` lists, shows, starts and cancels."""
    ingested = json.loads(lectern("ingest", str(site.books / "arms"), "--json", home=site.home).stdout)
    listed = json.loads(lectern("jobs", "list", "--json", "--limit", "3", home=site.home).stdout)
    result = lectern("jobs", "show", str(ingested["job_id"]), home=site.home).stdout
    started = json.loads(lectern("jobs", "start", "arms", "--mode", "full", "--json", home=site.home).stdout)
    site.wait_for_end(started["job_id"])
    cancelled_job = json.loads(lectern("jobs", "cancel", str(started["job_id"]), "--json", home=site.home).stdout)

    assert listed[0]["job_id"] == ingested["job_id"]
    assert "completed" in result
    assert started["mode"] == "full"
    assert cancelled_job["status"] == "completed"
    unknown = lectern("jobs", "show", "99999", home=site.home, check=False)
    assert (unknown.returncode, "no job 99999" in unknown.stderr) == (2, True)


def test_another_keys_books_and_jobs_are_not_there(tmp_path: Path) -> None:
    """A key for one book neither sees, follows, cancels nor begins jobs of another, and needs the right to ingest."""
    home, books = tmp_path / "home", tmp_path / "books"
    for name in ("mine", "yours"):
        (books / name).mkdir(parents=True)
        (books / name / "01-nodes.md").write_text("# Nodes\n\nA node is a process that computes.\n", encoding="utf-8")
        lectern("ingest", str(books / name), home=home)
    keys = {}
    for name, options in {"mine": ["--book", "mine", "--right", "ingest"], "reader": ["--right", "read"]}.items():
        key_json = lectern("keys", "create", "--name", name, *options, "--json", home=home).stdout
        keys[name] = {"X-API-Key": re.search(r"lk_\w+|[\w-]+_\w+_\w+", key_json).group()}
    with (
        serving([LECTERN, "serve", "--port", "0"], env=environment(home, books)) as address,
        httpx.Client(base_url=address, timeout=MAX_WAIT_SECONDS, headers=keys["mine"]) as web,
    ):
        assert [job["book_id"] for job in web.get("/ingestions").json()["jobs"]] == ["mine"]
        assert web.get("/ingestions?book_id=yours").json()["jobs"] == []
        foreign, unknown = web.get("/ingestions/2"), web.get("/ingestions/3")
        assert (foreign.status_code, foreign.json()["detail"]) == (404, unknown.json()["detail"].replace("3", "2"))
        assert web.get("/ingestions/2/events").status_code == 404
        assert web.post("/ingestions/2/cancel").status_code == 404
        assert web.post("/books/yours/ingestions").status_code == 404
        assert web.post("/books/nobodys/ingestions", json={"source": "yours"}).status_code == 404
        assert web.post("/books/mine/ingestions", json={"dry_run": True}).status_code == 200
        assert web.get("/ingestions", headers=keys["reader"]).status_code == 403
        assert httpx.get(f"{address}/ingestions").status_code == 401


def chunks(book: str, home: Path) -> list[dict]:
    """What the index holds, without the moments at which it got there."""
    lines = [json.loads(line) for line in lectern("chunks", book, "--json", home=home).stdout.splitlines()]
    for line in lines:
        line["payload"] = {name: value for name, value in line["payload"].items() if name not in TIMES}
    return lines


@contextmanager
def doomed(home: Path, books: Path) -> Iterator[tuple[subprocess.Popen[str], Site]]:
    """A server that may be killed; else it is stopped at the end."""
    process = subprocess.Popen(
        [LECTERN, "serve", "--port", "0"], env=environment(home, books), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = next(match for line in process.stdout if (match := re.search(r"http://[^/\s]+", line))).group()
        with Site(address, home, books) as site:
            yield process, site
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=MAX_WAIT_SECONDS)


def workers_of(pid: int) -> list[int]:
    """The processes that a server spawned."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")  # a child belongs to the thread that spawned it
    return [int(child) for child_list in lists for child in child_list.read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")


def test_a_killed_server_leaves_its_job_to_the_next(tmp_path: Path) -> None:
    """SIGKILL in the middle of a book: the next start takes the job up, and the index ends like a fresh ingest's."""
    home, books = tmp_path / "home", tmp_path / "books"
    author = Author(books / "long", 3)
    for n in range(50):
        author._write(Path(f"mod-d/chapter-1-z/{n:03}-lesson.md"), author._lesson())
    with doomed(home, books) as (process, site):
        job_id = site.start("long", source="long").json()["job_id"]
        halfway = site.follow(job_id, until_indexed=True)[-1]
        children = workers_of(process.pid)
        process.kill()
    assert halfway.name == "progress"
    assert children
    waiting = json.loads(lectern("jobs", "show", str(job_id), "--json", home=home).stdout)
    assert (waiting["status"], waiting["attempts"]) == ("queued", 1)

    with doomed(home, books) as (_, site):
        job = site.wait_for_end(job_id)
        assert site.follow(job_id, halfway.id)[0].name == "planned"  # of the new attempt, from its beginning
    assert (job["status"], job["attempts"]) == ("completed", 2)
    assert 0 < job["files_skipped"] < job["files_discovered"]
    assert not [child for child in children if Path(f"/proc/{child}/status").exists()]
    lectern("ingest", str(author.folder), home=tmp_path / "fresh")
    assert chunks("long", home) == chunks("long", tmp_path / "fresh")


def test_a_job_whose_worker_is_killed_fails_and_the_server_goes_on(tmp_path: Path) -> None:
    """A dead worker is a failed job with a reason; the next job is done, and a stopping server lays it down quickly."""
    home, books = tmp_path / "home", tmp_path / "books"
    author = Author(books / "long", 4)
    for n in range(30):
        author._write(Path(f"mod-d/chapter-1-z/{n:03}-lesson.md"), author._lesson())
    with doomed(home, books) as (process, site):
        job_id = site.start("long", source="long").json()["job_id"]
        site.follow(job_id, most=1)
        (worker,) = [worker for worker in workers_of(process.pid) if "spawn_main" in _command(worker)]
        os.kill(worker, signal.SIGSTOP)
        time.sleep(1)  # by now the server waits for a step of its; killed between two, it would only be replaced
        os.kill(worker, signal.SIGKILL)
        job = site.wait_for_end(job_id)
        assert (job["status"], "ended unexpectedly" in job["error_message"]) == ("failed", True)
        assert site.web.get("/health/ready").status_code == 200

        job_id = site.start("long", source="long").json()["job_id"]
        site.follow(job_id, most=1)
        start_time = time.monotonic()
    assert time.monotonic() - start_time < 20
    laid = json.loads(lectern("jobs", "show", str(job_id), "--json", home=home).stdout)
    assert (laid["status"], laid["attempts"]) == ("queued", 0)
