"""What keys, readers, peers and their settings are made of, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lectern.api.addresses import is_loopback, networks, peer_of
from lectern.api.readers import TOKEN_LIFETIME_SECONDS, Readers
from lectern.app.settings import load_settings
from lectern.domain.errors import BadInput, ConfigError
from lectern.domain.keys import KeyRequest, origin_of
from lectern.store.keys import SqlKeys
from tests.databases import fresh_database

PUBLISHABLE: dict[str, Any] = {
    "name": "w",
    "kind": "publishable",
    "books": frozenset({"b"}),
    "origins": frozenset({"https://a.example"}),
}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "k", "rights": frozenset()}, "right"),
        ({"name": "k", "rights": frozenset({"root"})}, "right"),
        ({"name": "k", "books": frozenset()}, "book"),
        ({"name": "k", "books": frozenset({"No Slug"})}, "lectern books"),
        ({"name": "k", "books": frozenset({"x" * 65})}, "lectern books"),
        ({"name": "k", "days": 0}, "days"),
        ({"name": "k", "days": -1}, "days"),
        ({"name": "k", "days": float("nan")}, "days"),
        ({"name": "k", "days": 1e9}, "days"),
        ({"name": "k", "origins": frozenset({"https://a.example"})}, "--publishable"),
        ({**PUBLISHABLE, "books": None}, "--book"),
        ({**PUBLISHABLE, "books": frozenset({"a", "b"})}, "exactly one"),
        ({**PUBLISHABLE, "origins": frozenset()}, "--origin"),
        ({**PUBLISHABLE, "rights": frozenset({"read", "ingest"})}, "read and chat"),
        ({**PUBLISHABLE, "rights": frozenset({"admin"})}, "read and chat"),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_advice(fields: dict[str, Any], says: str) -> None:
    """Whatever is wrong, the message names it."""
    with pytest.raises(BadInput, match=says):
        KeyRequest(**fields)


def test_books_of_every_script_can_have_a_key() -> None:
    """A book's id is a slug of letters of any script."""
    assert KeyRequest(name="k", books=frozenset({"physical-ai-robotics", "机器人", "книга-2"})).books


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("https://Example.org/", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(typed: str, origin: str) -> None:
    """Lower case, no default port, no slash at the end."""
    assert origin_of(typed) == origin


@pytest.mark.parametrize(
    "typed",
    ["*", "null", "", "example.org", "ftp://a.example", "https://", "https://a.example/page", "https://a.example?x",
     "https://u:p@a.example", "https://*.a.example", "https://a.example:99999", "https://a b", "file:///x"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(typed: str) -> None:
    """No wildcard, no path, no other scheme."""
    with pytest.raises(BadInput, match=r"https://example\.org"):
        origin_of(typed)


@pytest.fixture
async def keys(tmp_path: Path) -> AsyncIterator[SqlKeys]:
    """A store."""
    async with fresh_database("sqlite", tmp_path) as engine:
        yield SqlKeys(engine)


async def test_a_reader_is_known_again_by_its_token(keys: SqlKeys) -> None:
    """With the key it was made for, by every process on the database, and a renewed token is the same reader's."""
    token = await Readers(keys).token("one")
    reader = await Readers(keys).reader("one", token.text)
    renewed = await Readers(keys).token("one", reader)

    assert reader
    assert await Readers(keys).reader("one", renewed.text) == reader
    assert await Readers(keys).reader("one", (await Readers(keys).token("one")).text) != reader


async def test_a_token_that_was_not_signed_so_names_nobody(keys: SqlKeys) -> None:
    """Another key's, another reader's, with more time, written otherwise, without signature, cut, or made up."""
    readers = Readers(keys)
    text = (await readers.token("one")).text
    name, expires, signature = text.split(".")
    other_token = (await readers.token("one")).text.split(".")[0]

    assert await readers.reader("two", text) is None
    forged = (
        f"{other_token}.{expires}.{signature}",
        f"{name}.{int(expires) + 1}.{signature}",
        f"{name}.0{expires}.{signature[:-1]}",
        f"{name}.0{expires}.{signature}",
        f"{name}.{expires}.{'0' * 64}",
        f"{name}.{expires}.",
        f"{name}.{expires}",
        f" {text}",
        f"{text}\n",
        text.upper(),
        "",
        "ü",
    )
    assert [wrong for wrong in forged if await readers.reader("one", wrong) is not None] == []


async def test_a_token_ends_after_thirty_days(keys: SqlKeys) -> None:
    """Not a second later than it says."""
    token = await Readers(keys, clock=lambda: 1000.0).token("one")

    assert token.expires_at == "1970-01-31T00:16:40.000Z"
    assert await Readers(keys, clock=lambda: 1000.0 + TOKEN_LIFETIME_SECONDS - 1).reader("one", token.text)
    assert await Readers(keys, clock=lambda: 1000.0 + TOKEN_LIFETIME_SECONDS).reader("one", token.text) is None


def scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    """A request from there that claims to come from elsewhere."""
    headers = [(b"x-forwarded-for", address.encode("latin-1")) for address in forwarded]
    return {"client": (client, 1) if client else None, "headers": headers}


@pytest.mark.parametrize(
    ("proxies", "client", "forwarded", "peer"),
    [
        ((), "10.0.0.9", ["1.2.3.4"], "10.0.0.9"),
        ((), "127.0.0.1", ["1.2.3.4"], "127.0.0.1"),
        (("10.0.0.0/24",), "10.0.0.9", [], "10.0.0.9"),
        (("10.0.0.0/24",), "10.0.0.9", ["1.2.3.4"], "1.2.3.4"),
        (("10.0.0.0/24",), "10.0.1.9", ["1.2.3.4"], "10.0.1.9"),
        (("10.0.0.0/24",), "10.0.0.9", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),  # the client wrote the first
        (("10.0.0.0/24",), "10.0.0.9", ["6.6.6.6", "1.2.3.4"], "1.2.3.4"),
        (("10.0.0.0/24",), "10.0.0.9", ["1.2.3.4, 10.0.0.8"], "1.2.3.4"),
        (("10.0.0.0/24",), "10.0.0.9", ["6.6.6.6, evil"], "10.0.0.9"),
        (("10.0.0.0/24",), "10.0.0.9", ["6.6.6.6, "], "10.0.0.9"),
        (("10.0.0.0/24",), "10.0.0.9", ["10.0.0.7"], "10.0.0.7"),
        (("::1",), "::1", ["2001:db8::5"], "2001:db8::/64"),
        ((), "2001:db8::1234", [], "2001:db8::/64"),
        ((), "::ffff:1.2.3.4", [], "1.2.3.4"),
        ((), "::1", [], "::1"),
        ((), None, ["1.2.3.4"], "unknown"),
    ],
)
def test_a_header_is_believed_from_listed_proxies_only(
    proxies: tuple[str, ...], client: str | None, forwarded: list[str], peer: str
) -> None:
    """The last address on the way that is no listed proxy counts; an IPv6 customer counts as one."""
    assert peer_of(scope(client, *forwarded), networks(proxies)) == peer


def test_only_this_machines_own_addresses_are_loopback() -> None:
    """A name that merely looks local is not."""
    assert all(is_loopback(host) for host in ("localhost", "127.0.0.1", "127.0.0.9", "::1", "[::1]"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", ""))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LECTERN_RATE_LIMIT", "-1"),
        ("LECTERN_PROXIES", "10.0.0.0/33"),
        ("LECTERN_PROXIES", "*"),
        ("LECTERN_HOSTS", "https://a.example"),
        ("LECTERN_HOSTS", "*"),
        ("LECTERN_ORIGINS", "*"),
        ("LECTERN_ORIGINS", "a.example"),
    ],
)
def test_a_wrong_setting_is_said_at_start_up(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """With the variable's name, and no wildcard that would open everything."""
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=name):
        load_settings()


def test_the_address_of_redis_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold a password."""
    monkeypatch.setenv("LECTERN_LIMITS_URL", "memcached://:hunter2@host")

    with pytest.raises(ConfigError, match=r"LECTERN_LIMITS_URL.*redis://") as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("LECTERN_LIMITS_URL", "redis://:hunter2@host")
    assert "hunter2" not in repr(load_settings())


def test_lists_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """And come out as they are compared."""
    monkeypatch.setenv("LECTERN_PROXIES", "10.0.0.1, 192.168.0.0/16")
    monkeypatch.setenv("LECTERN_HOSTS", "Lectern.Example,[::1]")
    monkeypatch.setenv("LECTERN_ORIGINS", "https://A.example/,")
    settings = load_settings()

    assert settings.proxies == ("10.0.0.1/32", "192.168.0.0/16")
    assert settings.hosts == ("lectern.example", "[::1]")
    assert settings.origins == ("https://a.example",)
