"""What a search asks of PostgreSQL and of Qdrant, whatever is asked: two statements, one batch, and look-ups of
passages that were not read lately."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from asyncpg.transaction import Transaction
from sqlalchemy import event

from lectern.app.lectern import Lectern
from lectern.app.open import Application, open_application
from lectern.app.settings import Settings
from lectern.domain.scope import Scope
from tests.databases import new_postgres_database
from tests.qdrant_server import QdrantServer

QUESTIONS = ("What is a topic?", "How does a gripper close, and when?", "Which sensors see in the dark?")
LESSON = "# {title}\n\nA {title} closes, opens and turns. Number {n} of the {title} sees a sensor.\n"


class RoundTrips:
    """The statements that the database got, and the requests that Qdrant got."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.requests: list[str] = []

    def clear(self) -> None:
        """Begin to count."""
        self.statements.clear()
        self.requests.clear()


@contextmanager
def round_trips(app: Application) -> Iterator[RoundTrips]:
    """Everything that is sent while the block runs; nothing may begin a transaction."""
    trips = RoundTrips()
    engine = app.engine.sync_engine

    def statement(_connection: object, _cursor: object, text: str, *_: object) -> None:
        trips.statements.append(text)

    async def begin(_transaction: Transaction) -> None:
        raise AssertionError("a search began a transaction, which is two more statements")

    real = httpx.AsyncClient.send

    async def send(self: httpx.AsyncClient, request: httpx.Request, **kwargs: object) -> httpx.Response:
        trips.requests.append(request.url.path.rpartition("/points")[2])
        return await real(self, request, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.AsyncClient, "send", send)
        patch.setattr(Transaction, "start", begin)
        event.listen(engine, "before_cursor_execute", statement)
        try:
            yield trips
        finally:
            event.remove(engine, "before_cursor_execute", statement)


@pytest.fixture
async def lectern(tmp_path: Path, postgres_address: str, real_qdrant: QdrantServer) -> AsyncIterator[Lectern]:
    """A book of four lessons and two modules on PostgreSQL and a Qdrant server."""
    for n, title in enumerate(("gripper", "topic", "lidar", "camera")):
        folder = tmp_path / "book" / "ab"[n % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"0{n}-{title}.md").write_text(LESSON.format(title=title, n=n), encoding="utf-8")
    settings = Settings(
        database_url=(await new_postgres_database(postgres_address)).render_as_string(hide_password=False),
        qdrant_url=real_qdrant.url,
        qdrant_collection_name=tmp_path.name,
    )
    async with open_application(settings) as app:
        lectern = Lectern(app)
        await lectern.ingest(tmp_path / "book", book="book")
        await lectern.search(QUESTIONS[0])
        yield lectern


async def test_a_search_is_one_batch_and_two_statements(lectern: Lectern) -> None:
    """With words that nobody asked for before, with filters, and where no book is named. Passages that this process has
    not read yet take one look-up by id."""
    with round_trips(lectern.app) as trips:
        for text in QUESTIONS:
            for scope in (None, Scope(tier=2), Scope(module="a", chapters=(0, 9)), Scope(levels=("A2", "B1"))):
                trips.clear()
                findings = await lectern.search(text, scope=scope)
                assert findings.hits
                assert len(trips.statements) <= 2, trips.statements
                assert trips.requests in (["/query/batch"], ["/query/batch", ""])
        trips.clear()
        await lectern.search(QUESTIONS[0])
        assert trips.requests == ["/query/batch"]
