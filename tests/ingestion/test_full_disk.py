"""A disk that is full, or nearly so (RELIABILITY I17): jobs fail with words, no process dies, readers are served, and
with room again the same ingestion goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lectern.domain.errors import IndexDamaged, OutOfResources
from lectern.domain.resources import shortage_of
from lectern.index.edge import engine_errors
from tests.books import Author
from tests.served import LECTERN, serving

MIB = 1024 * 1024
WHOLE_MIB = 600
LEVELS = (0, 1, 16)  # MiB that are free; without the check the process died at each but the first
MIN_FREE = "48"


class SmallDisk:
    """A file system in memory, whose size can be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, mib: int) -> None:
        """Change the size so that this much is free."""
        status = os.statvfs(self.folder)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        self._resize(f"{used + mib * MIB}")

    def enlarge(self) -> None:
        """Make room for everything."""
        self._resize(f"{WHOLE_MIB}m")

    def _resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@contextmanager
def _mounted(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={WHOLE_MIB}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a file system")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk with a home on it, which holds one book."""
    with _mounted(tmp_path / "disk") as disk:
        Author(tmp_path / "first", 1)
        Author(tmp_path / "second", 2)
        assert _run(disk, "ingest", str(tmp_path / "first")).returncode == 0
        yield disk


def _environment(disk: SmallDisk) -> dict[str, str]:
    settings = {
        "LECTERN_HOME": str(disk.folder / "home"),
        "LECTERN_BOOKS": str(disk.folder.parent),
        "LECTERN_MIN_FREE_MIB": MIN_FREE,
    }
    return {**os.environ, **settings}


def _run(disk: SmallDisk, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LECTERN, *arguments], capture_output=True, text=True, check=False, env=_environment(disk), cwd=disk.folder
    )


def test_commands_say_that_the_disk_is_full(disk: SmallDisk, tmp_path: Path) -> None:
    """At every level an ingestion ends with words and exit code 3, never by a signal; a search is answered or says why
    not; nobody is told to delete or to move anything; and with room again everything is there and complete."""
    for level in LEVELS:
        disk.leave(level)
        ingested = _run(disk, "ingest", str(tmp_path / "second"))
        assert ingested.returncode == 3, (level, ingested)
        assert "Free some room" in ingested.stderr or "free some room" in ingested.stderr, level
        assert not {"delete", "remove", "move"} & set(ingested.stderr.lower().split()), level
        searched = _run(disk, "search", "robot", "--book", "first")
        assert searched.returncode == 0 or "room" in searched.stderr, (level, searched)
    disk.enlarge()

    assert _run(disk, "ingest", str(tmp_path / "second")).returncode == 0
    assert "Index and ledger agree." in _run(disk, "doctor").stdout


def test_a_server_goes_on_when_the_disk_fills(disk: SmallDisk) -> None:
    """At every level the job fails with words while searches are answered; with room again the same job completes."""
    with (
        serving([LECTERN, "serve", "--port", "0"], env=_environment(disk)) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as web,
    ):
        for level in LEVELS[1:]:
            disk.leave(level)
            job = _ended_job(web)
            assert job["status"] == "failed", (level, job)
            assert "room" in job["error_message"], (level, job)
            search = web.post("/search", json={"text": "robot sensor", "book_id": "first"})
            assert (search.status_code, bool(search.json()["results"])) == (200, True), level
        disk.enlarge()

        assert _ended_job(web)["status"] == "completed"
        assert web.post("/doctor", json={}).json() == []


def _ended_job(web: httpx.Client) -> dict[str, str]:
    job_id = web.post("/books/second/ingestions", json={"source": "second"}).json()["job_id"]
    web.get(f"/ingestions/{job_id}/events").raise_for_status()  # ends with the job
    job: dict[str, str] = web.get(f"/ingestions/{job_id}").json()
    return job


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Exception("service error: IO Error: No space left on device (os error 28)"), "disk is full"),
        (Exception("Cannot allocate memory (os error 12)"), "not enough memory"),
        (Exception("engine.so: failed to map segment from shared object"), "not enough memory"),
        (Exception("failed to open: Too many open files (os error 24)"), "ulimit -n"),
        (Exception("service error: (os error 30)"), "read-only"),
    ],
)
def test_a_shortage_is_not_damage(error: Exception, words: str) -> None:
    """What the engine says of a full disk, of memory and of descriptors becomes an error that may be tried again."""
    with pytest.raises(OutOfResources, match=words) as raised, engine_errors("books"):
        raise error
    assert raised.value.retryable


def test_a_thread_that_cannot_start_is_a_shortage() -> None:
    """Python says so in an exception of its own, wherever the thread was wanted."""
    assert "not enough memory" in (shortage_of(RuntimeError("can't start new thread")) or "")


def test_damage_is_not_a_shortage() -> None:
    """Every other failure of the engine stays damage; nothing is to be deleted because of it."""
    with pytest.raises(IndexDamaged, match="doctor --mend") as raised, engine_errors("books"):
        raise Exception("Service internal error: file corrupted")  # noqa: TRY002  # as the engine raises it
    assert "emove its folder" not in str(raised.value)
    assert shortage_of(ValueError("a plain error")) is None
