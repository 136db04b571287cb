"""LECTERN_HOME: found, created when asked, owned by one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lectern.app.home import find_home
from lectern.domain.errors import ConfigError, InUse


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


def test_a_second_process_is_told_who_the_first_is(tmp_path: Path) -> None:
    """The error names the process that owns the folder, and the folder is free again once that ended."""
    home = find_home(tmp_path / "home", create=True)
    code = "import sys, pathlib, lectern.app.home as h\nwith h.Home(pathlib.Path(sys.argv[1])).owned(): pass"
    other = [sys.executable, "-c", code, str(home.path)]

    with home.owned():
        refused = subprocess.run(other, capture_output=True, text=True, check=False)

    assert InUse.__name__ in refused.stderr
    assert f"process {os.getpid()}" in refused.stderr
    assert subprocess.run(other, check=False).returncode == 0
