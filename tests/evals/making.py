"""Small question sets, written by hand: what the tests measure can be checked by reading."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCUMENTS = [
    {
        "_id": "https://x.org/bees#hive",
        "title": "Bees",
        "text": "A hive of bees makes honey from the nectar of flowers.",
    },
    {"_id": "../tides", "title": "Tides", "text": "The moon pulls the sea, and so the tides rise twice a day."},
    {"_id": "bread", "title": "Bread", "text": "Yeast eats the sugar in the dough, and the gas lets the bread rise."},
    {"_id": "ice", "title": "", "text": "Ice floats because water is densest at four degrees, not when it freezes."},
    {"_id": "glass", "title": "Glass", "text": "Glass is melted sand, cooled so quickly that no crystals can form."},
]
QUERIES = [
    {"_id": "q1", "text": "Where does honey come from?", "gold": [{"doc": "https://x.org/bees#hive"}]},
    {"_id": "q2", "text": "Why does the sea rise and fall every day?", "gold": [{"doc": "../tides"}]},
    {"_id": "q3", "text": "What makes dough rise in the oven?", "gold": [{"doc": "bread"}]},
    {"_id": "q4", "text": "Which things float or are melted?", "gold": [{"doc": "ice"}, {"doc": "glass"}]},
    {"_id": "q5", "text": "Who painted the Mona Lisa?", "answerable": False, "gold": []},
]


def write_lines(file: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def question_set(
    folder: Path,
    queries: Iterable[Mapping[str, Any]] = QUERIES,
    documents: Iterable[Mapping[str, Any]] | None = DOCUMENTS,
) -> Path:
    """A set's folder; without documents it has no corpus."""
    folder.mkdir(parents=True)
    write_lines(folder / "queries.jsonl", queries)
    if documents is not None:
        write_lines(folder / "corpus.jsonl", documents)
    return folder


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with these files."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder
