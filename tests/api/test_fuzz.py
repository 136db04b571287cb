"""Schemathesis over the whole API: examples, coverage, fuzzing and sequences, against a real server with keys."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.served import LECTERN, lectern, serving

ST = str(Path(sys.executable).with_name("st"))
PHASES = "examples,coverage,fuzzing,stateful"
RULES = """
[checks.positive_data_acceptance]  # a filter may be well formed and yet not fit the book
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]
"""


@pytest.fixture
def guarded(sample_home: Path, tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """A server that asks for keys, a key that may do everything, and the server's log."""
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    rights = [option for right in ("read", "chat", "ingest", "admin") for option in ("--right", right)]
    new_key = json.loads(lectern("keys", "create", "--name", "fuzz", *rights, "--json", home=home).stdout)
    env = {**os.environ, "LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}
    log = tmp_path / "server.log"
    command = ["bash", "-c", f'exec "$0" "$@" 2>{log}', LECTERN, "serve", "--port", "0"]
    with serving(command, env=env) as server:
        yield server, new_key["key"], log


def test_no_request_finds_a_fault(
    guarded: tuple[str, str, Path], tmp_path: Path, request: pytest.FixtureRequest, seed: int
) -> None:
    """No 5xx, no response that its description does not allow, no way around the keys, in any phase; the log has no
    traceback and no key."""
    server, key, log = guarded
    (tmp_path / "rules.toml").write_text(RULES)
    total, sent_count = int(request.config.getoption("--fuzz")), 0
    while sent_count < total:
        seed += 1
        examples = max(4, min(100, (total - sent_count) // 80))
        result = subprocess.run(
            [
                *(ST, "--config-file", "rules.toml", "run", f"{server}/openapi.json"),
                *("--header", f"Authorization: Bearer {key}", "--phases", PHASES, "--checks", "all"),
                *("--exclude-operation-id", "removeBook"),  # nothing would be left to ask
                *("--max-examples", str(examples), "--seed", str(seed), "--no-color"),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert result.returncode == 0, result.stdout[-6000:]
        sent_count += int(re.findall(r"(\d+) generated", result.stdout)[-1])

    log_text = log.read_text()
    assert "Traceback" not in log_text
    assert key not in log_text
