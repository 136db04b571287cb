"""`lectern keys`, as a person and as a program use it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.keys.conftest import Site, keys_command
from tests.served import lectern


def test_keys_are_made_listed_turned_and_taken_back(site: Site) -> None:
    """Through the running server; the text is shown when it is made and never again."""
    result = keys_command(
        site.home, "create", "--name", "from outside", "--book", "alpha", "--book", "gamma", "--right", "read",
        "--expires", "30",
    )  # fmt: skip
    text = result.stdout.strip()
    key_id = text.split("_")[1]
    listed = keys_command(site.home, "list").stdout
    as_json = json.loads(keys_command(site.home, "list", "--json").stdout)
    [listed_key] = [key for key in as_json if key["key_id"] == key_id]

    assert "'gamma' is indexed yet" in result.stderr
    assert "not shown again" in result.stderr
    assert text not in listed + json.dumps(as_json)
    assert key_id in listed
    assert (listed_key["rights"], listed_key["books"], listed_key["state"]) == (["read"], ["alpha", "gamma"], "active")
    assert listed_key["expires_at"]
    assert "digest" not in listed_key
    assert site.call("GET", "/books", headers={"X-API-Key": text}).status_code == 200
    turned = keys_command(site.home, "rotate", key_id, "--grace", "1").stdout.strip()
    for good in (text, turned):
        assert site.call("GET", "/books", headers={"X-API-Key": good}).status_code == 200
    assert json.loads(keys_command(site.home, "revoke", key_id, "--json").stdout)["state"] == "revoked"
    assert site.call("GET", "/books", headers={"X-API-Key": turned}).status_code == 401


def test_a_mistake_is_one_line_and_exit_2(site: Site) -> None:
    """With advice, and nothing is made."""
    before = keys_command(site.home, "list").stdout
    for arguments, says in (
        (["create", "--name", "w", "--publishable", "--book", "alpha"], "--origin"),
        (["create", "--name", "w", "--publishable", "--book", "alpha", "--origin", "*"], "https://example.org"),
        (["rotate", "nobody"], "lectern keys list"),
    ):
        result = keys_command(site.home, *arguments)
        assert result.exit_code == 2
        assert says in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert keys_command(site.home, "list").stdout == before


def test_without_a_home_nothing_is_made(tmp_path: Path) -> None:
    """Only `ingest` and `serve` make a home."""
    result = lectern("keys", "create", "--name", "k", home=tmp_path / "none", check=False)

    assert result.returncode == 2
    assert not (tmp_path / "none").exists()
