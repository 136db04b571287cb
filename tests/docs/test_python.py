"""The programs of docs/python.md run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8420"


def test_the_program_in_the_docs_runs(tmp_path: Path) -> None:
    """Every call that the page shows works: ingest, search, outline, lesson, ask and stream."""
    program, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "LECTERN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert "completed" in result.stdout
    assert "answer " in result.stdout


def test_the_program_for_a_server_runs(server: str, tmp_path: Path) -> None:
    """On a running server, the address aside; a mistake is shown as the error that it is."""
    _, program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert ADDRESS in program
    result = subprocess.run(
        [sys.executable, "-c", program.replace(ADDRESS, server)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert "answer " in result.stdout
    assert "UnknownBook there is no book 'another-book'; indexed: physical-ai-robotics" in result.stdout
    assert list(tmp_path.iterdir()) == []
