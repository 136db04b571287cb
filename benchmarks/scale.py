"""The embedded index as it grows: time to fill it, memory, size on disk, and the time of a filtered hybrid search, at
each of a few sizes. Chunks and vectors are synthetic, the adapter is the real one (`index/edge.py`: `replace` in
batches as an ingestion makes them, `find` as a search does). Each size has a fresh folder, filled by one process and
searched by another, so that either's memory is its own.

    python benchmarks/scale.py --json scale.json --chart docs/benchmarks/scale.svg
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from peers.measuring import peak_mib, percentile
from peers.processes import disk_mib, run

SIZES = (10_000, 50_000, 100_000)
DIMENSIONS = 384
LESSON = 12  # chunks of a lesson
LESSONS_A_BATCH = 16  # 192 chunks between two commits, as `ingestion/ingest.py` does it
WORDS, VOCABULARY = 110, 20_000  # of a chunk, of the book; word frequencies fall off as in a language
TWO_WINDOWS = 0.4  # of the chunks need two windows, as in a book with code
QUERIES, CANDIDATES = 200, 30  # `retrieval/search.py` asks for as many candidates
BOOK, COLLECTION = "synthetic", "scale"


# In the processes that fill and search.


def lessons(count: int) -> Iterator[list[Any]]:
    """`count` chunks with vectors, lesson by lesson; always the same."""
    import numpy as np

    dice = np.random.default_rng(0)
    for number in range(-(-count // LESSON)):
        size = min(LESSON, count - number * LESSON)
        chances = dice.random((size, WORDS))
        words = [" ".join(f"word{rank}" for rank in row) for row in (VOCABULARY**chances).astype(int)]
        windows = 1 + (dice.random(size) < TWO_WINDOWS)
        vectors = unit(dice.standard_normal((int(windows.sum()), DIMENSIONS)))
        ends = windows.cumsum()
        yield [
            chunk(number, place, text, vectors[end - window : end].tolist())
            for place, (text, window, end) in enumerate(zip(words, windows, ends, strict=True))
        ]


def unit(vectors: Any) -> Any:  # noqa: ANN401  # numpy
    """The rows, each of length 1."""
    import numpy as np

    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def chunk(number: int, place: int, text: str, vectors: list[list[float]]) -> Any:  # noqa: ANN401  # an IndexedChunk
    """One chunk of a lesson, its filter fields spread evenly."""
    from lectern.domain.books import LessonPlace
    from lectern.domain.chunks import Chunk, IndexedChunk, Stamp, StampedChunk, chunk_id, content_hash, parent_doc_id

    home = LessonPlace(book_id=BOOK, module=f"module-{number % 8}", chapter=number % 40, lesson=number)
    digest = content_hash(text)
    new_chunk = Chunk(
        id=chunk_id(home, digest),
        text=text,
        book_id=BOOK,
        module=home.module,
        chapter=home.chapter,
        lesson=home.lesson,
        source_file=f"{home.module}/{number}.md",
        parent_doc_id=parent_doc_id(home),
        section_title=f"Section {place}",
        trail=(f"Lesson {number}", f"Section {place}"),
        breadcrumb=f"{home.module} > Lesson {number} > Section {place}",
        line_start=place * 20 + 1,
        line_end=place * 20 + 20,
        hardware_tier=1 + number % 4,
        proficiency_level=("A1", "A2", "B1", "B2")[number // 4 % 4],
        layer="L1",
        chunk_index=place,
        total_chunks=LESSON,
        prev_chunk_id=None,
        next_chunk_id=None,
        page_title=f"Lesson {number}",
        module_title=home.module,
        chapter_title=f"Chapter {home.chapter}",
        lesson_title=f"Lesson {number}",
        url=f"/{home.module}/{number}",
        sections=(),
        content_hash=digest,
        source_file_hash=digest,
        word_count=WORDS,
        token_count=round(WORDS * 1.3),
        char_count=len(text),
    )
    now = "2000-01-01T00:00:00.000Z"
    stamp = Stamp(version=1, created_at=now, updated_at=now, embedded_at=now, embedding_model="synthetic")
    return IndexedChunk(stored=StampedChunk(chunk=new_chunk, stamp=stamp), vectors=tuple(vectors))


async def fill(folder: Path, count: int) -> dict[str, Any]:
    """Put `count` chunks into an empty index; only `replace` is on the clock."""
    from lectern.domain.chunks import Change
    from lectern.index.edge import open_edge_index

    async def commit() -> None:  # the ledger's part, which is not measured here
        return

    took, generation, chunks_made = 0.0, 0, lessons(count)
    next(lessons(1))  # imports
    before = peak_mib()
    async with open_edge_index(folder, COLLECTION, DIMENSIONS) as index:
        while batch := [lesson for _, lesson in zip(range(LESSONS_A_BATCH), chunks_made, strict=False)]:
            changes = [Change(put=tuple(lesson), drop=(), language="en") for lesson in batch]
            generation += 1
            start = time.perf_counter()
            await index.replace(BOOK, generation, changes, commit)
            took += time.perf_counter() - start
        start = time.perf_counter()
    took += time.perf_counter() - start  # closing
    return {
        "seconds": round(took, 2),
        "chunks_a_second": round(count / took),
        "peak_mib": peak_mib(),
        "peak_mib_before": before,
        "disk_mib": disk_mib(folder),
    }


async def search(folder: Path, count: int) -> dict[str, Any]:
    """Open a filled index and search it, in the whole book and in a part of it."""
    import numpy as np

    from lectern.domain.scope import ChunkFilter
    from lectern.index.edge import open_edge_index

    everything = ChunkFilter(book_id=BOOK)
    part = ChunkFilter(book_id=BOOK, max_tier=2, chapter_min=0, chapter_max=29, levels=frozenset({"A1", "A2"}))
    dice = np.random.default_rng(1)
    queries = [
        (vector.tolist(), " ".join(f"word{rank}" for rank in (VOCABULARY ** dice.random(6)).astype(int)))
        for vector in unit(dice.standard_normal((QUERIES, DIMENSIONS)))
    ]
    before = peak_mib()
    start = time.perf_counter()
    async with open_edge_index(folder, COLLECTION, None) as index:
        opened = time.perf_counter() - start
        count_stored = await index.read(lambda view: view.count(everything))
        assert count_stored == count, f"{count_stored} chunks where {count} were put"
        figures: dict[str, Any] = {"in_part": await index.read(lambda view: view.count(part))}
        for name, where in (("whole", everything), ("part", part)):
            times = await _times(index, queries, where)
            figures |= {f"find_{name}_p{percent}_ms": round(percentile(times, percent), 2) for percent in (50, 99)}
    return figures | {"open_seconds": round(opened, 3), "search_peak_mib": peak_mib(), "search_peak_mib_before": before}


async def _times(index: Any, queries: Sequence[tuple[list[float], str]], where: Any) -> list[float]:  # noqa: ANN401  # lectern is imported in the child
    """Milliseconds of each search, after ten that are not counted."""
    times = []
    for number, (vector, text) in enumerate([*queries[:10], *queries]):
        start = time.perf_counter()
        results = await index.read(
            lambda view, vector=vector, text=text: view.find(vector, text, language="en", where=where, limit=CANDIDATES)
        )
        if number >= len(queries[:10]):
            times.append((time.perf_counter() - start) * 1000)
        assert results
    return times


# In the process that compares.


def measure(count: int) -> dict[str, Any]:
    """Fill and search at one size, in two processes."""
    figures: dict[str, Any] = {"chunks": count}
    with tempfile.TemporaryDirectory(prefix="lectern-scale-") as folder:
        for work in ("fill", "search"):
            ran = run([sys.executable, Path(__file__).absolute(), "--work", work, "--folder", folder, str(count)])
            figures |= ran.output | {f"{work}_others": ran.other_cores}
    return figures


COLUMNS = {
    "chunks": "chunks",
    "seconds": "filled in, s",
    "chunks_a_second": "chunks/s",
    "peak_mib": "peak memory filling, MiB",
    "search_peak_mib": "peak memory searching, MiB",
    "disk_mib": "on disk, MiB",
    "open_seconds": "opened in, s",
    "find_whole_p50_ms": "find p50, ms",
    "find_whole_p99_ms": "p99",
    "find_part_p50_ms": "filtered p50, ms",
    "find_part_p99_ms": "p99",
}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The figures in Markdown, a line a size."""
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---:|" * len(COLUMNS)]
    lines += ["| " + " | ".join(f"{row[name]:,}" for name in COLUMNS) + " |" for row in rows]
    return "\n".join(lines)


PANELS = (
    ("Time to fill", "s", (("seconds", "fill"),)),
    ("Peak memory", "MiB", (("peak_mib", "filling"), ("search_peak_mib", "searching"))),
    ("Size on disk", "MiB", (("disk_mib", "index"),)),
    (
        "Hybrid find",
        "ms",
        (("find_whole_p50_ms", "p50"), ("find_whole_p99_ms", "p99"), ("find_part_p50_ms", "filtered")),
    ),
)
WIDTH, HEIGHT, MARGIN_LEFT, TOP, INNER_WIDTH, INNER_HEIGHT = 380, 260, 60, 44, 290, 160
COLOURS = ("#1f6feb", "#d4622a", "#2da44e")


def chart(rows: Sequence[dict[str, Any]]) -> str:
    """The figures as an SVG, a panel each; its colours are seen on light and dark pages."""
    panels = "\n".join(
        f'<g transform="translate({place % 2 * WIDTH},{place // 2 * HEIGHT})">\n{panel(rows, *panel_title)}\n</g>'
        for place, panel_title in enumerate(PANELS)
    )
    counts = ", ".join(f"{row['chunks']:,}" for row in rows)
    size = f'viewBox="0 0 {2 * WIDTH} {2 * HEIGHT}" width="{2 * WIDTH}" height="{2 * HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">\n'
        f"<title>The embedded index at {counts} chunks</title>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{panels}\n</svg>\n'
    )


def panel(rows: Sequence[dict[str, Any]], title: str, measure_of: str, lines: Sequence[tuple[str, str]]) -> str:
    """One chart: axes from zero, a line a series with its values beside its points."""
    most_x, most_y = rows[-1]["chunks"], max(row[name] for row in rows for name, _ in lines) * 1.12
    bottom = TOP + INNER_HEIGHT

    def spot(row: dict[str, Any], name: str) -> tuple[float, float]:
        return MARGIN_LEFT + INNER_WIDTH * row["chunks"] / most_x, bottom - INNER_HEIGHT * row[name] / most_y

    elements = [f'<text x="{MARGIN_LEFT}" y="20" font-weight="bold" fill="#24292f">{title}, {measure_of}</text>']
    for step in range(5):
        y, value = bottom - INNER_HEIGHT * step / 4, most_y * step / 4
        elements.append(f'<path d="M{MARGIN_LEFT} {y:.1f}h{INNER_WIDTH}" stroke="#d0d7de"/>')
        elements.append(
            f'<text x="{MARGIN_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{value:,.0f}</text>'
        )
    for row in rows:
        x, _ = spot(row, lines[0][0])
        label = f"{row['chunks'] // 1000} k"
        elements.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#57606a">{label}</text>')
    for place, ((name, label), colour) in enumerate(zip(lines, COLOURS, strict=False)):
        spots = [spot(row, name) for row in rows]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        elements.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        elements += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in spots]
        x = MARGIN_LEFT + 8 + place * 80
        elements.append(f'<text x="{x}" y="{TOP - 8}" fill="{colour}">● {label}</text>')
    return "\n".join(elements)


def main() -> None:
    """Measure every size; print a table, write JSON and the chart."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--work", choices=("fill", "search"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work = fill if options.work == "fill" else search
        print(json.dumps(asyncio.run(work(options.folder, options.sizes[0]))))
        return
    rows = [measure(count) for count in sorted(options.sizes)]
    figures = {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("lectern", "qdrant-edge-py", "numpy")},
        "queries": QUERIES,
        "sizes": rows,
    }
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if options.chart:
        options.chart.write_text(chart(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
