"""The progress of an ingestion on stderr: a bar on a terminal, elsewhere a line every few seconds. Both have the same
numbers: files, texts embedded, texts a second, and the time that is left. A thread draws them, so that the time goes on
while nothing is reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lectern.cli.terminal import echo

if TYPE_CHECKING:
    from rich.console import Console

LINE_SECONDS = 5.0  # between two lines where there is no terminal
MIN_SHARE = 0.01  # of the work, before which the time that is left is a guess
MINUTE, HOUR = 60, 3600
BAR_WIDTH, REFRESHES = 24, 8  # characters, and drawings a second
STAGES = {"survey": "Reading the folder", "read": "Reading lessons", "embed": "Embedding lessons"}


class IngestProgress:
    """How far an ingestion is, by the lines of its events."""

    def __init__(self) -> None:
        self.job_id = 0  # once it is known
        self.stage = "survey"
        self.done = self.total = self.embedded = 0
        self.share = 0.0
        self.waiting = ""  # for a server that does not answer
        self._start = time.monotonic()
        self._working_since = self._start

    def take(self, line: dict[str, Any]) -> None:
        """Take over the numbers of an event."""
        if line["kind"] == "planned":
            self.job_id = line["job_id"]
            self._working_since = time.monotonic()
        elif line["kind"] in ("working", "indexed"):
            self.stage, self.embedded = line["stage"], line["embedded"]
            self.done, self.total, self.share = line["done"], line["total"], line["share"]
            since = line.get("waiting_since")
            self.waiting = f"since {since[11:19]} UTC for {line['waiting_for']}" if since else ""

    @property
    def name(self) -> str:
        """What is being done."""
        return "Waiting" if self.waiting else STAGES[self.stage]

    def numbers(self) -> str:
        """Counts, rate and time left, as far as they are known."""
        if self.waiting:
            return self.waiting
        if not self.total:
            return _duration(time.monotonic() - self._start)
        seconds = max(time.monotonic() - self._working_since, 0.001)
        parts = [f"{self.done:,} of {self.total:,} files"]
        if self.embedded:
            parts.append(f"{self.embedded:,} texts, {self.embedded / seconds:.1f} a second")
        if MIN_SHARE <= self.share < 1:
            parts.append(f"about {_duration(seconds * (1 - self.share) / self.share)} left")
        return " · ".join(parts)


@contextmanager
def shown_progress() -> Iterator[IngestProgress]:
    """Show the progress of an ingestion while the block runs."""
    from rich.console import Console

    console, progress = Console(stderr=True), IngestProgress()
    with _bar(console, progress) if console.is_terminal else _lines(progress):
        yield progress


@contextmanager
def _bar(console: Console, progress: IngestProgress) -> Iterator[None]:
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table

    spinner = Spinner("dots")

    def render() -> Table:
        row = Table.grid(padding=(0, 1))
        row.add_column()
        row.add_column(no_wrap=True)
        row.add_column()
        row.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=progress.share, width=BAR_WIDTH, pulse=not progress.total)
        row.add_row(spinner, progress.name, bar, progress.numbers())
        return row

    with Live(get_renderable=render, console=console, transient=True, refresh_per_second=REFRESHES):
        yield


@contextmanager
def _lines(progress: IngestProgress) -> Iterator[None]:
    """A line as soon as there are numbers, and then every few seconds."""
    stopped = threading.Event()

    def write() -> None:
        wait = LINE_SECONDS / 25
        shown_at = time.monotonic()
        first = True
        while not stopped.wait(wait):
            is_due = time.monotonic() - shown_at >= LINE_SECONDS
            if is_due or (first and progress.total):
                echo(f"lectern: {progress.name}: {progress.numbers()}", err=True)
                shown_at = time.monotonic()
                first = first and not progress.total

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _duration(seconds: float) -> str:
    """A time as a person says it: `40 s`, `3 min`, `1 h 10 min`."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
