"""One real server for the whole folder: two small books, and a key of every sort."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.cli.keys import app
from lectern.domain.keys import RIGHTS, KeyRequest
from tests.served import LECTERN, serving

PAGE = "https://site.example"
BOOKS = {
    "alpha": "# Nodes\n\nA node is a process that computes. Nodes talk to each other over named topics.\n",
    "beta": "# Frames\n\nA frame is a coordinate system. Transforms say where one frame stands in another.\n",
}
QUESTION = {"alpha": "What is a node?", "beta": "What is a frame?"}
ALL_RIGHTS = frozenset(RIGHTS)
KEY_REQUESTS = {
    **{book: KeyRequest(name=book, rights=ALL_RIGHTS, books=frozenset({book})) for book in BOOKS},
    "new-book": KeyRequest(name="new-book", rights=frozenset({"ingest"}), books=frozenset({"new"})),
    "second": KeyRequest(name="second", rights=ALL_RIGHTS, books=frozenset({"alpha"})),
    **{f"only-{right}": KeyRequest(name=right, rights=frozenset({right})) for right in RIGHTS},
    "widget": KeyRequest(
        name="widget", kind="publishable", books=frozenset({"alpha"}), origins=frozenset({PAGE, "http://127.0.0.1"})
    ),
    "gadget": KeyRequest(name="gadget", kind="publishable", books=frozenset({"alpha"}), origins=frozenset({PAGE})),
    "expired": KeyRequest(name="expired", days=1e-9),
    "revoked": KeyRequest(name="revoked"),
}


@dataclass(frozen=True)
class Site:
    """A server, its home, its books, and the text of its keys."""

    address: str
    home: Path
    books: Path  # the folder that LECTERN_BOOKS names
    keys: dict[str, str] = field(repr=False)
    web: httpx.Client

    def call(self, method: str, path: str, key: str | None = None, **more: object) -> httpx.Response:
        """One request with a key."""
        headers = {**({"X-API-Key": self.keys[key]} if key else {}), **more.pop("headers", {})}  # type: ignore[dict-item]  # headers are a dict
        return self.web.request(method, f"{self.address}{path}", headers=headers, **more)  # type: ignore[arg-type]  # httpx's own


def keys_command(home: Path, *arguments: str) -> Result:
    """`lectern keys …` without a process of its own; it goes through the server all the same."""
    return CliRunner().invoke(app, list(arguments), env={"LECTERN_HOME": str(home)})


async def build(home: Path, folder: Path) -> dict[str, str]:
    """A home with the two books and the keys; the keys' texts."""
    async with open_lectern(Settings(home=home)) as lectern:
        for name, text in BOOKS.items():
            (folder / name).mkdir()
            (folder / name / "01-lesson.md").write_text(text, encoding="utf-8")
            (folder / name / f"{name}.png").write_bytes(name.encode())
            await lectern.ingest(folder / name, book=name)
        issued_keys = {name: await lectern.app.keys.create(key_request) for name, key_request in KEY_REQUESTS.items()}
        await lectern.app.keys.revoke(issued_keys["revoked"].key.key_id)
    return {name: issued.text for name, issued in issued_keys.items()}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server; nothing is limited on it, so that tests do not meet in a minute."""
    home = tmp_path_factory.mktemp("keyed") / "home"
    books = tmp_path_factory.mktemp("books")
    keys = asyncio.run(build(home, books))
    settings = {
        "LECTERN_HOME": str(home),
        "LECTERN_BOOKS": str(books),
        "LECTERN_RATE_LIMIT": "0",
        "LECTERN_ORIGINS": "https://listed.example",
    }
    with (
        serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address,
        httpx.Client(timeout=120, trust_env=False) as web,
    ):
        yield Site(address, home, books, keys, web)
