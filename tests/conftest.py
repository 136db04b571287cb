"""The suite is sealed by force: no setting of the machine leaks in, and nothing but loopback can be reached."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.qdrant_server import QdrantServer

# A busy machine is slow, and that is no failure. Every run tries the same examples, so that none fails by chance; with
# `--hypothesis-profile search` each run tries others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("search"), derandomize=True)
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_BOOK = ROOT / "examples" / "physical-ai-robotics"
SHARED_DATA = ROOT.parent / "shared" / "data"

if os.access("/dev/shm", os.W_OK):  # the engine syncs often; what tests promise does not depend on a disk
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

_FOREIGN = ("LECTERN_", "OPENAI_", "COHERE_", "QDRANT_", "AGENT_", "DATABASE_URL", "OTEL_")
_connect = socket.socket.connect
TEST_QDRANT_URL = os.environ.get("LECTERN_TEST_QDRANT_URL")  # a real server for the tests that can use one
TEST_QDRANT_BINARY = os.environ.get("LECTERN_TEST_QDRANT_BINARY")  # the server's program, where it is not below .cache
for _name in [name for name in os.environ if name.startswith(_FOREIGN)]:
    del os.environ[_name]  # here, so that fixtures of the whole session are sealed too


def _loopback_only(self: socket.socket, address: object) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if host is not None and host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise AssertionError(f"the suite tried to reach {host}")
    _connect(self, address)


@pytest.fixture(autouse=True)
def _sealed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LECTERN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)


@pytest.fixture(scope="session")
def sample_book() -> Path:
    """The folder of the sample book."""
    return SAMPLE_BOOK


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LECTERN_HOME in which the sample book is indexed; nobody owns it while no command runs."""
    from tests.served import lectern

    home = tmp_path_factory.mktemp("sample") / "home"
    lectern("ingest", str(SAMPLE_BOOK), home=home)
    return home


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LECTERN_HOME in which a small book is indexed, for tests that take a copy of it."""
    from tests.answering.scripted import write_book
    from tests.served import lectern

    folder = tmp_path_factory.mktemp("small")
    lectern("ingest", str(write_book(folder / "robots")), "--book", "robots", home=folder / "home")
    return folder / "home"


@pytest.fixture(scope="session")
def server(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server on a copy of that home."""
    from tests.served import LECTERN, serving

    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(sample_home, home)
    settings = {"LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}  # limits have servers of their own in tests/keys
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        yield address


def pytest_addoption(parser: pytest.Parser) -> None:
    """Longer campaigns run the same tests with larger numbers."""
    parser.addoption("--seed", default=0, type=int, help="begin random campaigns elsewhere, so that parts add up")
    parser.addoption("--histories", default=40, type=int, help="random histories of edits")
    parser.addoption("--kills", default=20, type=int, help="SIGKILLs during ingestion")
    parser.addoption("--disconnects", default=60, type=int, help="clients that reset a stream")
    parser.addoption("--turns", default=60, type=int, help="turns at once on one thread, by two processes")
    parser.addoption("--conversation-kills", default=4, type=int, help="SIGKILLs of a server during conversations")
    parser.addoption("--fuzz", default=500, type=int, help="requests that Schemathesis makes")
    parser.addoption("--soak-minutes", default=0.1, type=float, help="how long a server is under mixed load")
    parser.addoption("--drafts", default=3, type=int, help="hostile drafts of a model, each whole and streamed")
    parser.addoption("--hostile-share", default=0.25, type=float, help="how much of the largest file a hostile one is")
    parser.addoption("--reads", default=300, type=int, help="reads while lessons are replaced")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Test the longest files first."""
    from tests.durations import place_of

    items.sort(key=lambda item: place_of(item.path.relative_to(ROOT / "tests").as_posix()))


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How many kills; `make crash` asks for more."""
    return int(request.config.getoption("--kills"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Where random campaigns begin: one that takes an hour can be run in parts, each with a seed of its own."""
    return int(request.config.getoption("--seed"))


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """A real PostgreSQL, for as long as the session lasts."""
    from tests.databases import postgres

    with postgres() as address:
        yield address


@pytest.fixture(scope="session")
def real_qdrant() -> Iterator[QdrantServer]:
    """A real Qdrant server, shared by the session: tests use collections of their own and leave it running. Without
    its binary the test is skipped."""
    from tests.qdrant_server import qdrant_server

    with qdrant_server() as running:
        yield running


@pytest.fixture(scope="session")
def qdrant_url(request: pytest.FixtureRequest) -> str | None:
    """The address that LECTERN_TEST_QDRANT_URL names, else a real server's, else None: the client's in-memory mode."""
    from tests.qdrant_server import find_binary

    if TEST_QDRANT_URL or find_binary() is None:
        return TEST_QDRANT_URL
    server: QdrantServer = request.getfixturevalue("real_qdrant")
    return server.url
