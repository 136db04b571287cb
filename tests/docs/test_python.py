"""The program of docs/python.md runs as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_the_program_in_the_docs_runs(tmp_path: Path) -> None:
    """Every call that the page shows works: ingest, search, outline, lesson, ask and stream."""
    [program] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "LECTERN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout
    assert "answer " in done.stdout
