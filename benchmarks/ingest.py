"""Ingestion beside LlamaIndex, txtai and Chroma: the same book, the same weights, every system in an environment and
processes of its own, in turns in one run. Then Lectern alone: an unchanged book again, and 1 % of 7,000 files touched.

    python benchmarks/ingest.py BOOK --venvs DIR --queries questions.jsonl --json ingest.json

BOOK is a folder of Markdown. Environments that DIR lacks are made there with pip. A time is a whole process, from its
start to the last byte stored, after every system was started once on one file so that nobody reads cold files; the
time of the work alone stands beside it. Lectern's times include its exit and its model's loading, the peers' do not.
"""
# ruff: noqa: FBT001, FBT003  # `alone` says of every measurement whether it is given up when others disturb it

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from peers.processes import PEERS, Ran, disk_mib, environment, run, undisturbed

HERE = Path(__file__).parent
LECTERN = "lectern"
LEAST_RATIO, LEAST_SEARCH, MOST_UNCHANGED, MOST_SHARE = 2.0, 3.0, 1.0, 0.03  # the bars
AGAIN = 5  # unchanged ingests
FILES, SHARE, TOUCHES = 7_000, 0.01, 3
CHAPTER, MODULE = 50, 1_000  # lessons in each
WORDS = 110  # of a lesson, at least: about as many as a chunk of a real book has, so that a file is one chunk
FEWEST = 8  # of a paragraph that is worth repeating

Ingest = Callable[[Path, Path, bool], dict[str, Any]]  # book, store, alone


def lectern_ingest(book: Path, home: Path, alone: bool) -> Ran:
    """`lectern ingest`, as a person would say it."""
    command = Path(sys.executable).parent / "lectern"
    ran = run([command, "ingest", book, "--json"], alone=alone, LECTERN_HOME=str(home))
    assert not ran.output["files_failed"], ran.output["errors"]
    return ran


def run_lectern(book: Path, store: Path, alone: bool) -> dict[str, Any]:
    """One ingestion by Lectern."""
    ran = lectern_ingest(book, store, alone)
    return {
        "whole_seconds": round(ran.seconds, 3),
        "seconds": ran.output["duration_seconds"],
        "stage_seconds": ran.output["stage_seconds"],
        "files": ran.output["files_discovered"],
        "chunks": ran.output["chunks_created"],
        "windows": ran.output["chunks_embedded"],
        "peak_mib": ran.peak_mib,
        "others": ran.other_cores,
    }


def theirs(name: str, python: Path) -> Ingest:
    """Ingestions by a peer."""

    def ingest(book: Path, store: Path, alone: bool) -> dict[str, Any]:
        program = HERE / "peers" / f"{name}_ingest.py"
        ran = run([python, program, store, "--book", book, "--begun", str(time.time())], alone=alone)
        return ran.output | {"others": ran.other_cores}

    return ingest


def compare(
    systems: dict[str, Ingest], book: Path, folder: Path, rounds: int, tries: int
) -> dict[str, list[dict[str, Any]]]:
    """Everybody in turns, every second round in the opposite order; the last round's stores stay."""
    small = folder / "small"
    small.mkdir()
    shutil.copy(min(files_of(book), key=lambda file: file.stat().st_size), small)
    for name, ingest in systems.items():
        ingest(small, folder / f"{name}-warm", False)
    runs_by_system: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    for number in range(rounds):
        for name in list(systems)[:: 1 if number % 2 == 0 else -1]:
            runs_by_system[name].append(undisturbed(partial(fresh, systems[name], book, folder / name), tries))
            last_run = runs_by_system[name][-1]
            say(f"round {number + 1}: {name} {last_run['whole_seconds']:.1f} s, others {last_run['others']} cores")
    return runs_by_system


def fresh(ingest: Ingest, book: Path, store: Path, alone: bool) -> dict[str, Any]:
    """An ingestion into nothing."""
    shutil.rmtree(store, ignore_errors=True)
    return ingest(book, store, alone) | {"disk_mib": disk_mib(store)}


def ask(pythons: dict[str, Path], folder: Path, queries: Path, tries: int) -> dict[str, dict[str, Any]]:
    """Search every store, each in a new process."""

    def search(name: str, alone: bool) -> dict[str, Any]:
        program = HERE / "peers" / ("lectern_search.py" if name == LECTERN else f"{name}_ingest.py")
        command = [pythons[name], program, folder / name, "--queries", queries, "--begun", str(time.time())]
        ran = run(command, alone=alone)
        say(f"search: {name} {ran.said['search_p50_ms']} ms, others {ran.others} cores")
        return ran.output | {"others": ran.other_cores}

    return {name: undisturbed(partial(search, name), tries) for name in pythons}


def again(book: Path, home: Path, alone: bool) -> dict[str, Any]:
    """An unchanged book, several times."""
    runs = [lectern_ingest(book, home, alone) for _ in range(AGAIN)]
    assert all(ran.output["chunks_embedded"] == 0 == ran.output["files_processed"] for ran in runs)
    return {
        "whole_seconds": [round(ran.seconds, 3) for ran in runs],
        "seconds": [ran.output["duration_seconds"] for ran in runs],
        "others": max(ran.other_cores or 0 for ran in runs),
    }


def touch(source: Path, folder: Path, files: int, alone: bool) -> dict[str, Any]:
    """A full ingest of a large book, then again and again with a few files changed."""
    book, home = folder / "many", folder / "many-home"
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(book, ignore_errors=True)
    lesson_count = many_lessons(source, book, files)
    full = lectern_ingest(book, home, alone)
    say(f"{files} files: {full.seconds:.1f} s, others {full.others} cores")
    few, runs = max(1, round(files * SHARE)), []
    for number in range(TOUCHES):
        for file in lesson_count[number :: files // few][:few]:
            with file.open("a", encoding="utf-8") as text:
                text.write(f"\nEdition {number + 2} adds a sentence to this lesson.\n")
        runs.append(lectern_ingest(book, home, alone))
        assert runs[-1].output["files_processed"] == few, runs[-1].output
        say(f"{few} of them touched: {runs[-1].seconds:.2f} s, others {runs[-1].others} cores")
    return {
        "files": full.output["files_discovered"],
        "chunks": full.output["chunks_created"],
        "full_seconds": round(full.seconds, 2),
        "full_stage_seconds": full.output["stage_seconds"],
        "full_peak_mib": full.peak_mib,
        "touched": few,
        "touched_seconds": [round(ran.seconds, 3) for ran in runs],
        "touched_job_seconds": [ran.output["duration_seconds"] for ran in runs],
        "touched_stage_seconds": [ran.output["stage_seconds"] for ran in runs],
        "unchanged_seconds": round(lectern_ingest(book, home, alone).seconds, 3),
        "share": round(statistics.median(ran.seconds for ran in runs) / full.seconds, 4),
        "others": max(ran.other_cores or 0 for ran in (full, *runs)),
    }


def many_lessons(source: Path, book: Path, files: int) -> list[Path]:
    """A book of many one-chunk lessons, made of another's paragraphs; no two are alike, for each has its title."""
    dice, lessons_written = random.Random(0), []
    paragraphs = [part for file in files_of(source) for part in prose(file.read_text(encoding="utf-8"))]
    for number in range(files):
        words, body = 0, []
        while words < WORDS:
            body.append(dice.choice(paragraphs))
            words += len(body[-1].split())
        chapter = f"module-{number // MODULE + 1}/chapter-{number % MODULE // CHAPTER + 1}"
        file = book / chapter / f"{number % CHAPTER + 1:02}-lesson.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        title = f"Lesson {number + 1} of {files}"
        file.write_text(f"---\ntitle: {title}\n---\n\n# {title}\n\n" + "\n\n".join(body) + "\n", encoding="utf-8")
        lessons_written.append(file)
    return lessons_written


def prose(text: str) -> list[str]:
    """A lesson's plain paragraphs: no headings, lists, tables or code."""
    text = re.sub(r"\A---\n.*?\n---\n|^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return [part for part in parts if part[:1].isalpha() and FEWEST <= len(part.split()) <= WORDS]


def files_of(book: Path) -> list[Path]:
    """What a peer, too, would read of a book."""
    return sorted(path for path in book.rglob("*.md*") if path.suffix in {".md", ".mdx"})


def ratios(runs_by_system: dict[str, list[dict[str, Any]]], figure: str) -> dict[str, float]:
    """How many times longer each peer takes: the median of the rounds' ratios."""
    own_runs = runs_by_system[LECTERN]
    return {
        name: round(
            statistics.median(
                peer_run[figure] / own_run[figure] for peer_run, own_run in zip(runs, own_runs, strict=True)
            ),
            2,
        )
        for name, runs in runs_by_system.items()
    }


def table(figures: dict[str, Any]) -> str:
    """The systems side by side."""
    runs, searches = figures["systems"], figures.get("search", {})
    whole, work = ratios(runs, "whole_seconds"), ratios(runs, "seconds")
    head = "whole, s|times ours|work alone, s|times ours|chunks|pieces read|peak, MiB|on disk, MiB"
    head += "|first answer, s|search p50, ms|p99"
    lines = ["| | " + head.replace("|", " | ") + " |", "|---|" + "---:|" * 11]
    for name, rows in runs.items():
        row_figures = rows[-1] | searches.get(name, {})
        cells = [middle(rows, "whole_seconds"), whole[name], middle(rows, "seconds"), work[name], row_figures["chunks"]]
        read = row_figures.get("pieces_read")
        cells += [
            f"{read:,} of {row_figures['pieces']:,}" if read else "",
            middle(rows, "peak_mib"),
            row_figures["disk_mib"],
        ]
        cells += [row_figures.get(key, "") for key in ("first_answer_seconds", "search_p50_ms", "search_p99_ms")]
        lines.append(f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def middle(rows: Sequence[dict[str, Any]], figure: str) -> float:
    """The median of the rounds."""
    return round(statistics.median(row[figure] for row in rows), 2)


def bars(figures: dict[str, Any]) -> str:
    """What was to be reached, and whether it was."""
    bars_found: list[tuple[str, float, str, bool]] = []
    if peers := [name for name in figures.get("systems", {}) if name != LECTERN]:
        for label, figure in (("whole process", "whole_seconds"), ("work alone", "seconds")):
            ratio = min(ratios(figures["systems"], figure)[name] for name in peers)
            bars_found.append(
                (f"fastest peer's time to ours, {label}", ratio, f"≥ {LEAST_RATIO:g}", ratio >= LEAST_RATIO)
            )
    if peers and (searches := figures.get("search")):
        ratio = round(min(searches[name]["search_p50_ms"] for name in peers) / searches[LECTERN]["search_p50_ms"], 2)
        bars_found.append(("fastest peer's search p50 to ours", ratio, f"≥ {LEAST_SEARCH:g}", ratio >= LEAST_SEARCH))
    if unchanged := figures.get("unchanged"):
        for label, figure in (("whole process", "whole_seconds"), ("work alone", "seconds")):
            took = statistics.median(unchanged[figure])
            bars_found.append((f"unchanged book, {label}, s", took, f"< {MOST_UNCHANGED:g}", took < MOST_UNCHANGED))
    if touched := figures.get("touched"):
        share = touched["share"]
        label = f"{touched['touched']} of {touched['files']} files touched, share of a full ingest"
        bars_found.append((label, share, f"≤ {MOST_SHARE:g}", share <= MOST_SHARE))
    figures["met"] = all(met for *_, met in bars_found)
    rows = [f"| {name} | {value} | {bar} | {'met' if met else 'MISSED'} |" for name, value, bar, met in bars_found]
    return "\n".join(["| | | bar | |", "|---|---:|---:|---|", *rows])


def say(line: str) -> None:
    """Progress, apart from the tables."""
    print(line, file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("book", type=Path)
    parser.add_argument("--venvs", type=Path, help="the peers' environments; without it Lectern is measured alone")
    parser.add_argument("--queries", type=Path, help="JSON lines with `text`; 200 are asked")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--files", type=int, default=FILES, help="of the large book; 0 leaves that part out")
    parser.add_argument("--tries", type=int, default=1, help="waits for quiet, and repeats what others disturbed")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> int:
    """Compare; the exit code says whether all bars were met."""
    arguments = options()
    book = arguments.book.resolve()
    pythons = {LECTERN: Path(sys.executable)}
    if arguments.venvs:
        pythons |= {name: environment(arguments.venvs / name, packages) for name, packages in PEERS.items()}
    systems = {name: run_lectern if name == LECTERN else theirs(name, python) for name, python in pythons.items()}
    figures: dict[str, Any] = {
        "rounds": arguments.rounds,
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("lectern", "onnxruntime", "qdrant-edge-py")},
    }
    with tempfile.TemporaryDirectory(prefix="lectern-ingest-") as temporary:
        folder = Path(temporary)
        figures["systems"] = compare(systems, book, folder, arguments.rounds, arguments.tries)
        if arguments.queries:
            figures["search"] = ask(pythons, folder, arguments.queries.resolve(), arguments.tries)
        figures["unchanged"] = undisturbed(partial(again, book, folder / LECTERN), arguments.tries)
        if arguments.files:
            figures["touched"] = undisturbed(partial(touch, book, folder, arguments.files), arguments.tries)
    print(f"{table(figures)}\n\n{bars(figures)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
