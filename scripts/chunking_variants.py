"""The table of chunk sizes in docs/benchmarks/chunking.md: each variant is indexed by the real pipeline and measured on
exact excerpts, on last sentences, and on how well lessons are found.

    python scripts/chunking_variants.py DATA > table.md

DATA is the folder that holds the question sets qa-chunking and qa-physai.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from lectern.app.settings import Settings
from lectern.evals.datasets import load_set
from lectern.evals.runner import EvalContext, evaluate
from lectern.evals.runs import Run
from lectern.models.local.embedder import LocalEmbedder
from lectern.reading.chunking import ReadingRules

VARIANTS = {
    "400, short ones share (chosen)": ReadingRules(),
    "400, none share": ReadingRules(short_tokens=0),
    "400, under 150 share": ReadingRules(short_tokens=150),
    "250": ReadingRules(target_tokens=250),
    "150, in one window": ReadingRules(target_tokens=150),
    "600": ReadingRules(target_tokens=600),
}
CUT = "400, cut at the window"
_windows = LocalEmbedder.passages


def first_window(self: LocalEmbedder, trail: Sequence[str], text: str) -> tuple[str, ...]:
    """What an embedder reads that drops the rest."""
    return _windows(self, trail, text)[:1]


async def measured(data: Path, rules: ReadingRules) -> tuple[Run, Run]:
    """One variant, in a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        context = EvalContext(
            settings=Settings(home=Path(home)), cache=Path(home), fresh=True, advance=lambda *_: None, rules=rules
        )
        cut = await evaluate("chunking", [load_set(data / "qa-chunking")], context)
        return cut, await evaluate("retrieval", [load_set(data / "qa-physai")], context)


def row(name: str, cut: Run, retrieval_run: Run) -> str:
    """One line of the table."""
    [chunking], [retrieval] = cut.sets, retrieval_run.sets
    top, ideal = chunking.modes["hybrid"].figures(), chunking.modes["ideal"].figures()
    last, lessons = chunking.modes["last_sentence"].figures(), retrieval.modes["hybrid"].figures()
    cells = [top["token_recall"], top["token_precision"], top["token_iou"], ideal["token_iou"], last["recall@5"]]
    cells += [lessons["recall@1"], lessons["recall@5"]]
    return f"| {name} | {chunking.chunks} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |"


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description="Compare sizes of chunks.")
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    heads = ("recall", "precision", "IoU", "ideal IoU", "last sentence R@5", "physai R@1", "R@5")
    print("| target in tokens | chunks | " + " | ".join(heads) + " |\n|---|" + "---:|" * (len(heads) + 1))
    for name, rules in VARIANTS.items():
        print(row(name, *asyncio.run(measured(data, rules))), flush=True)
    with patch.object(LocalEmbedder, "passages", first_window):
        print(row(CUT, *asyncio.run(measured(data, ReadingRules()))), flush=True)


if __name__ == "__main__":
    main()
