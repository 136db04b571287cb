"""Where the time of a search goes: its stages, each with the median of its share, over a home that holds one book.

python benchmarks/stages.py HOME QUERIES
"""

from __future__ import annotations

import asyncio
import functools
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.index.edge import EdgeView
from lectern.models.local.embedder import LocalEmbedder, Model
from lectern.retrieval import search as searching

QUESTIONS, LIMIT = 200, 5
SPENT: dict[str, float] = defaultdict(float)  # milliseconds of the search under way


def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same, its time written down."""

    @functools.wraps(work)
    async def waited(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # whatever it takes and gives
        start_time = time.perf_counter()
        try:
            return await work(*arguments, **options)
        finally:
            SPENT[name] += (time.perf_counter() - start_time) * 1000

    @functools.wraps(work)
    def timed_call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # as above
        start_time = time.perf_counter()
        try:
            return work(*arguments, **options)
        finally:
            SPENT[name] += (time.perf_counter() - start_time) * 1000

    return waited if asyncio.iscoroutinefunction(work) else timed_call


async def main(home: Path, questions: list[str]) -> None:
    """Ask, and print a table."""
    for owner, attribute, name in (
        (searching, "resolve_book", "find the book"),
        (LocalEmbedder, "embed", "embed the question"),
        (Model, "vector", "embed the question: the network"),
        (EdgeView, "find", "propose candidates"),
        (EdgeView, "_query", "propose candidates: the engine's four queries"),
        (searching, "rank", "fuse and rank"),
        (EdgeView, "with_vectors", "read the hits"),
    ):
        setattr(owner, attribute, watched(name, getattr(owner, attribute)))
    rows: dict[str, list[float]] = defaultdict(list)
    async with open_lectern(Settings(home=home), create=False) as lectern:
        await lectern.search(questions[0])
        for question in questions:
            SPENT.clear()
            start_time = time.perf_counter()
            await lectern.search(question, limit=LIMIT)
            rows["all of it"].append((time.perf_counter() - start_time) * 1000)
            for name, spent in SPENT.items():
                rows[name].append(spent)
    print("| stage | p50, ms |\n|---|---:|")
    for name, spent in rows.items():
        print(f"| {name} | {statistics.median(spent):.2f} |")


if __name__ == "__main__":
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    asyncio.run(main(Path(sys.argv[1]), [json.loads(line)["text"] for line in lines][:QUESTIONS]))
