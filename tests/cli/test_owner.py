"""One owner: while a server runs, commands go through it."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.served import LECTERN, lectern, serving

LESSON = "# Nodes\n\n## What is a node?\n\nA node is a process that computes something useful.\n"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one lesson."""
    folder = tmp_path / "tiny-book"
    folder.mkdir()
    (folder / "01-nodes.md").write_text(LESSON, encoding="utf-8")
    return folder


def test_commands_go_through_the_running_server(book: Path, tmp_path: Path) -> None:
    """Ingest, search, ask, list and mend work as ever while a server owns the home; errors keep their exit codes."""
    home = tmp_path / "home"
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, "LECTERN_HOME": str(home)}):
        job = json.loads(lectern("ingest", str(book), "--json", home=home).stdout.splitlines()[-1])
        assert job["files_processed"] == 1
        assert "computes" in lectern("search", "what is a node", home=home).stdout
        assert "[1]" in lectern("ask", "What is a node?", home=home).stdout
        assert json.loads(lectern("chunks", "--json", home=home).stdout.splitlines()[0])["id"]
        assert "agree" in lectern("doctor", home=home).stdout
        refused = lectern("ask", "Which wine goes well with roast duck?", home=home, check=False)
        assert refused.returncode == 4
        wrong = lectern("ingest", str(tmp_path / "none"), home=home, check=False)
        assert (wrong.returncode, "none" in wrong.stderr) == (2, True)

    assert not (home / "server.json").exists()
    assert "agree" in lectern("doctor", home=home).stdout


def test_a_server_with_other_settings_says_so(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command whose shell has other settings than the server says who answers and what to do; secrets are not
    written down. The same settings, and those with the default's value, are no difference."""
    home = tmp_path / "home"
    own = {"LECTERN_HOME": str(home), "AGENT_TOP_K": "7", "OPENAI_API_KEY": "sk-canary", "LECTERN_ANSWERER": "offline"}
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **own}) as address:
        for name in ("AGENT_TOP_K", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, own[name])
        monkeypatch.setenv("LECTERN_DOUBTFUL", "flag")
        alike = lectern("ingest", str(book), home=home).stderr
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("AGENT_TOP_K", "8")
        other = lectern("ask", "What is a node?", "--json", home=home)
        doctor = lectern("doctor", home=home).stdout
        written = (home / "server.json").read_text(encoding="utf-8")

    port = address.rpartition(":")[2]
    pid = json.loads(written)["pid"]
    assert "settings" not in alike
    assert other.stderr == (
        f"lectern: the server (process {pid}, port {port}) answers with its own settings, not with AGENT_TOP_K, "
        "OPENAI_BASE_URL of this shell; restart it with them, or stop it and add --direct\n"
    )
    assert json.loads(other.stdout)["model"] == "offline-extractive"
    assert f"port {port}), which answers with offline-extractive." in doctor
    assert "sk-canary" not in written


def test_a_watching_server_follows_the_author(book: Path, tmp_path: Path) -> None:
    """`serve --watch` brings what was edited before it started, and one edit after, to its readers; no command said."""
    import time

    import httpx

    home = tmp_path / "home"
    lectern("ingest", str(book), home=home)
    (book / "02-arms.md").write_text("# Arms\n\nA badger sleeps in the elbow.\n", encoding="utf-8")
    environment = {**os.environ, "LECTERN_HOME": str(home)}
    with serving([LECTERN, "serve", "--port", "0", "--watch"], env=environment) as address:
        (book / "03-legs.md").write_text("# Legs\n\nA hedgehog sleeps in the gearbox.\n", encoding="utf-8")

        def search_results() -> str:
            response = httpx.post(f"{address}/search", json={"text": "which animal sleeps there"}, timeout=120)
            return str(response.json()["results"])

        deadline = time.monotonic() + 60
        while not ("hedgehog" in search_results() and "badger" in search_results()) and time.monotonic() < deadline:
            time.sleep(0.2)

        assert "hedgehog" in search_results()
        assert "badger" in search_results()


def test_direct_names_the_process_that_owns_the_home(book: Path, tmp_path: Path) -> None:
    """`--direct`, and a second server, say which process is in the way, and nothing is touched."""
    home = tmp_path / "home"
    environment = {**os.environ, "LECTERN_HOME": str(home)}
    with serving([LECTERN, "serve", "--port", "0"], env=environment):
        owner = (home / "owner").read_text(encoding="utf-8")
        for arguments in (["ingest", str(book), "--direct"], ["serve", "--port", "0"]):
            refused = lectern(*arguments, home=home, check=False)

            assert refused.returncode == 2
            assert f"process {owner}" in refused.stderr


def test_the_local_door_is_closed_to_strangers(book: Path, tmp_path: Path) -> None:
    """Without the token the route does not exist; the token's file is for this user only."""
    import httpx

    home = tmp_path / "home"
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, "LECTERN_HOME": str(home)}) as address:
        for headers in ({}, {"x-lectern-token": "guess"}):
            assert httpx.post(f"{address}/local/books", json={}, headers=headers).status_code == 404
        assert (home / "server.json").stat().st_mode & 0o077 == 0
        assert not re.search("local", httpx.get(f"{address}/openapi.json").text)
