"""LECTERN_HOME: found, created when asked, owned by one process."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lectern.app.home import configured_home, find_home
from lectern.domain.errors import ConfigError, InUse
from tests.served import lectern


def test_the_nearest_folder_upward_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands work from anywhere inside a project."""
    (tmp_path / ".lectern").mkdir()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)

    assert find_home(None, create=False).path == tmp_path / ".lectern"


def test_asking_never_creates_a_folder(tmp_path: Path) -> None:
    """Where nothing is indexed, asking says so and leaves nothing behind."""
    with pytest.raises(ConfigError, match="lectern ingest"):
        find_home(tmp_path / "none", create=False)

    assert not (tmp_path / "none").exists()


def rights(path: Path) -> int:
    """What owner, group and others may do."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_is_private(tmp_path: Path) -> None:
    """A new home, one that was already there, and what Lectern had put into it are for their owner alone."""
    old = tmp_path / "old"
    (old / "index").mkdir(parents=True)
    (old / "lectern.db").touch()
    for path, mode in ((old, 0o755), (old / "index", 0o755), (old / "lectern.db", 0o644)):
        path.chmod(mode)

    assert [rights(find_home(path, create=True).path) for path in (tmp_path / "new", old)] == [0o700, 0o700]
    assert [rights(old / name) for name in ("index", "lectern.db")] == [0o700, 0o600]


def test_a_folder_with_other_things_keeps_its_rights(tmp_path: Path) -> None:
    """`LECTERN_HOME` may be a folder that others need; what is Lectern's in it is private all the same."""
    own, foreign = ("lectern.db", "lectern.db-wal", "owner"), ("notes.txt", "index.html", "owners.txt", "evals.csv")
    for name in (*own, *foreign):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    tmp_path.chmod(0o755)
    find_home(tmp_path, create=True)

    assert rights(tmp_path) == 0o755
    assert {name: rights(tmp_path / name) for name in own} == dict.fromkeys(own, 0o600)
    assert {name: rights(tmp_path / name) for name in foreign} == dict.fromkeys(foreign, 0o644)


def test_a_home_that_others_can_read_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's folder, whose rights cannot be changed."""
    tmp_path.chmod(0o755)

    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", forbidden)
    with pytest.raises(ConfigError, match=r"can be read by other users.*not permitted.*conversations"):
        find_home(tmp_path, create=False)


def test_what_a_command_makes_is_private(tmp_path: Path) -> None:
    """The database of a new home is nobody else's, also where the folder itself is shared."""
    (tmp_path / "notes.txt").touch()
    tmp_path.chmod(0o755)
    lectern("books", home=tmp_path)

    made = [path for path in tmp_path.iterdir() if path.name != "notes.txt"]
    assert tmp_path / "lectern.db" in made
    assert [path for path in made if rights(path) & 0o077] == []


def test_a_second_process_is_told_who_the_first_is(tmp_path: Path) -> None:
    """The error names the process that owns the folder, and the folder is free again once that ended."""
    home = find_home(tmp_path / "home", create=True)
    code = "import sys, pathlib, lectern.app.home as h\nwith h.Home(pathlib.Path(sys.argv[1])).owned(): pass"
    command = [sys.executable, "-c", code, str(home.path)]

    with home.owned():
        refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert InUse.__name__ in refused.stderr
    assert f"process {os.getpid()}" in refused.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_a_server_that_is_gone_has_no_address(tmp_path: Path) -> None:
    """The lock says whether a server runs, not a process number that another program may have by now."""
    home = find_home(tmp_path / "home", create=True)
    with home.owned(), home.serving("http://127.0.0.1:8420", "token"):
        code = "import sys, pathlib, lectern.app.home as h\nprint(h.Home(pathlib.Path(sys.argv[1])).server())"
        result = subprocess.run(
            [sys.executable, "-c", code, str(home.path)], capture_output=True, text=True, check=True
        )
        file_text = (home.path / "server.json").read_text(encoding="utf-8")
    (home.path / "server.json").write_text(file_text, encoding="utf-8")  # as a kill leaves it

    assert "http://127.0.0.1:8420" in result.stdout
    assert home.server() is None


def test_servers_may_start_in_one_home_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers on PostgreSQL and Qdrant share a home; none fails because another writes its address at that moment, and
    nothing is left behind."""
    home, create = find_home(tmp_path / "home", create=True), os.open

    def create_after_another(*arguments: Any) -> int:
        (home.path / "server.json").write_text("{}", encoding="utf-8")
        return create(*arguments)

    monkeypatch.setattr(os, "open", create_after_another)
    with home.serving("http://127.0.0.1:8420", "token"):
        assert "8420" in (home.path / "server.json").read_text(encoding="utf-8")

    assert list(home.path.iterdir()) == []


@pytest.mark.parametrize("name", ["LECTERN_HOME", "lectern_home"])
def test_the_home_is_configured_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As every other setting, from the environment and from `.env`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LECTERN_HOME", raising=False)
    (tmp_path / ".env").write_text(f"{name}={tmp_path / 'file'}\n", encoding="utf-8")
    from_file = configured_home()
    monkeypatch.setenv(name, str(tmp_path / "environment"))

    assert from_file == tmp_path / "file"
    assert configured_home() == tmp_path / "environment"
