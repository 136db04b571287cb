"""An ingestion with too little memory (RELIABILITY I14) completes or says so, and the next one completes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.books import Author
from tests.served import LECTERN, lectern

MIB = 1024 * 1024
CAPS = (800, 1_700)  # MiB of address space; an ingestion of this book needs about 1.4 GiB
ROOM = (24, 112, 120)  # MiB, when numpy is loaded: too little for it, for its threads, for what comes after it
TOO_LITTLE_FOR_NUMPY = 24
INTERRUPTED = 130  # the exit code after Ctrl-C
CAP_AT_NUMPY = """
import importlib.abc, resource, sys
room = int(sys.argv.pop(1)) * 1024 * 1024

class Cap(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            sys.meta_path.remove(self)
            [size] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize:")]
            limit = size * 1024 + room
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

sys.meta_path.insert(0, Cap())
from lectern.cli.main import run
run()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is one of Linux")
def test_too_little_memory_leaves_a_sound_index(tmp_path: Path) -> None:
    """Whether it fails with words or the engine ends the process: without a cap the rest comes, and index and ledger
    agree."""
    author, home = Author(tmp_path / "book", 4), tmp_path / "home"
    lectern("ingest", str(author.folder), "--book", "book", home=home)
    outcomes: Counter[bool] = Counter()
    for cap in CAPS:
        author._add()
        author._change_a_line()
        ended = _capped(cap, "ingest", str(author.folder), "--book", "book", "--mode", "full", "--replace", home=home)
        outcomes[ended.returncode == 0] += 1
        assert ended.returncode == 0 or _says_why(ended), (cap, ended)
    lectern("ingest", str(author.folder), "--book", "book", home=home)

    assert "Index and ledger agree." in lectern("doctor", home=home).stdout
    assert len(outcomes) == 2, outcomes  # else the caps tell nothing


def _capped(mib: int, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LECTERN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LECTERN_HOME": str(home)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB)),  # no threads
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is one of Linux")
@pytest.mark.parametrize("room", ROOM)
def test_libraries_that_lack_memory_are_no_interruption(tmp_path: Path, room: int) -> None:
    """If memory ends while numpy is loaded, nothing says that somebody pressed Ctrl-C: numpy's library sends its own
    process that signal when it can start no thread. What fails after it has been loaded, and how, differs from run to
    run, so only the smallest room must end in words."""
    author = Author(tmp_path / "book", 4)
    command = [sys.executable, "-c", CAP_AT_NUMPY, str(room), "ingest", str(author.folder), "--book", "book"]
    env = {**os.environ, "LECTERN_HOME": str(tmp_path / "home")}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    assert "interrupted" not in ended.stderr
    assert ended.returncode not in {0, INTERRUPTED}
    assert room > TOO_LITTLE_FOR_NUMPY or _says_why(ended), ended


def _says_why(ended: subprocess.CompletedProcess[str]) -> bool:
    """Whether memory is named, by Lectern or by the engine, which ends a process that has none left."""
    assert "Traceback" not in ended.stderr, ended.stderr[-1500:]
    return ended.returncode in {3, -signal.SIGABRT} and "memory" in ended.stderr
