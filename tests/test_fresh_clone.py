"""The promise of the README: a fresh clone, one command, a cited answer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT
from tests.ports import free_port
from tests.served import serving


@pytest.mark.slow
def test_make_run_serves_a_cited_answer_from_a_fresh_clone(tmp_path: Path) -> None:
    """`make run` builds its environment, ingests the sample book, prints one URL and answers over HTTP."""
    clone = tmp_path / "clone"
    clone.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    environment = {name: value for name, value in os.environ.items() if name not in {"LECTERN_HOME", "VIRTUAL_ENV"}}
    environment["PATH"] = os.pathsep.join(
        folder for folder in environment["PATH"].split(os.pathsep) if ".venv" not in folder
    )

    with serving(["make", "run", f"PORT={free_port()}"], cwd=clone, env=environment) as address:
        answer = httpx.post(
            f"{address}/chat/run", json={"message": "How do ROS 2 nodes communicate?"}, timeout=60
        ).json()

    assert answer["should_answer"], answer
    assert "[1]" in answer["response"]
    assert answer["sources"][0]["url"].startswith("/")
    assert (clone / ".lectern").is_dir()
