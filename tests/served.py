"""A real server for tests: `lectern serve` in its own process, on a free port, stopped at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LECTERN = str(Path(sys.executable).with_name("lectern"))


def lectern(*arguments: str, home: Path, check: bool = True, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as a person would."""
    result = subprocess.run(
        [LECTERN, *arguments],
        capture_output=True,
        input=typed,
        text=True,
        check=False,
        env={**os.environ, "LECTERN_HOME": str(home)},
    )
    assert not check or result.returncode == 0, result.stderr
    return result


@contextmanager
def serving(
    command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, stderr: IO[str] | None = None
) -> Iterator[str]:
    """The address that a serving command prints once it answers."""
    with serving_process(command, cwd=cwd, env=env, stderr=stderr) as (address, _):
        yield address


@contextmanager
def serving_process(
    command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, stderr: IO[str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """That address, and the process, which a test may kill."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env if env is not None else os.environ,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    try:
        yield _address(process), process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 2)  # what Ctrl-C sends, to make and what it started alike
        try:
            process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            raise


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    output = []
    for line in process.stdout:
        output.append(line)
        if match := re.search(r"http://\S+", line):
            return match.group().rstrip("/")
    raise AssertionError(f"no address was printed: {''.join(output)}")
