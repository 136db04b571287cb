"""An ingestion with too little memory (RELIABILITY I14) completes or says so, and the next one completes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.books import Author
from tests.served import LECTERN, lectern

MIB = 1024 * 1024
CAPS = (800, 1_700)  # MiB of address space; an ingestion of this book needs about 1.4 GiB


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
        assert ended.returncode in {0, 3, -signal.SIGABRT}, (cap, ended)  # the engine ends a process that has no memory
        assert ended.returncode == 0 or "memory" in ended.stderr, (cap, ended)
        assert "Traceback" not in ended.stderr, (cap, ended.stderr[-1500:])
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
