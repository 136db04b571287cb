"""Fits the shipped relevance scale of the local embedder, and says how well it holds on each set.

    python scripts/fit_relevance.py FOLDER [--squad2 SET] [--write]

FOLDER keeps the index between runs. The sample book's golden questions are always asked; `--squad2` names a folder with
`docs` and `queries.jsonl`. Every set has the same say. Questions are searched for as in an answer: the best cosine of
the first hits counts. `--write` also stretches the scale to the ranges of the embedders that nobody has measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from lectern import Settings, open_lectern
from lectern.app.lectern import Lectern
from lectern.confidence.calibration import SHIPPED, Calibration, read_calibration, to_json
from lectern.confidence.relevance import COVERED_RELEVANCE, COVERED_SHARE, RelevanceScale, scale_of
from lectern.confidence.signals import CONFIDENCE_HITS

EXAMPLES = Path(__file__).parent.parent / "examples"
SAMPLE = EXAMPLES / "physical-ai-robotics"
LOCAL = SHIPPED / "local.json"
GOLDEN = EXAMPLES / "golden" / "physical-ai-robotics"


async def best_cosines(opened: Lectern, book: Path, questions: Path) -> list[float]:
    """The best cosine of each answerable question of a set."""
    await opened.ingest(book, book=(book_id := questions.name))
    lines = (questions / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [row["text"] for row in map(json.loads, lines) if row["answerable"]]
    cosines = []
    for text in texts:
        findings = await opened.search(text[:1000], book=book_id, limit=CONFIDENCE_HITS)
        cosines.append(max((hit.similarity for hit in findings.hits), default=0.0))
    return cosines


async def ask(work: Path, squad2: Path | None) -> dict[str, list[float]]:
    """The best cosines of every set."""
    async with open_lectern(Settings(home=work / "home")) as opened:
        sets = {GOLDEN.name: await best_cosines(opened, SAMPLE, GOLDEN)}
        if squad2 is not None:
            sets[squad2.name] = await best_cosines(opened, squad2 / "docs", squad2)
    return sets


def report(scale: RelevanceScale, sets: dict[str, list[float]]) -> None:
    """What the scale makes of each set: the share that 0.70 keeps, and the median best passage."""
    print("points", [(round(cosine, 4), relevance) for cosine, relevance in scale.points], "n", scale.n)
    for name, cosines in sets.items():
        relevance = np.array([scale.of(cosine) for cosine in cosines])
        low, middle, high = np.quantile(cosines, (1 - COVERED_SHARE, 0.5, COVERED_SHARE))
        print(
            f"{name}: n {len(cosines)}, 5th, 50th and 95th percentile {low:.3f} {middle:.3f} {high:.3f}, "
            f"0.70 keeps {np.mean(relevance >= COVERED_RELEVANCE):.3f}, median relevance {np.median(relevance):.3f}"
        )


def starting_point(scale: RelevanceScale, shipped: Calibration) -> RelevanceScale:
    """The local scale, with cosines moved to the range that another embedder is known to use."""
    floor, covered, median = (shipped.zero + cosine * (shipped.one - shipped.zero) for cosine, _ in scale.points[1:-1])
    return scale_of(shipped.floor or floor, covered, median, n=0)


def main() -> None:
    """Ask, fit, report, and write on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--squad2", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    sets = asyncio.run(ask(options.work, options.squad2))
    calibration = read_calibration(LOCAL)
    cosines = [cosine for group in sets.values() for cosine in group]
    weights = [1 / len(group) for group in sets.values() for _ in group]
    quantiles = np.quantile(cosines, (1 - COVERED_SHARE, 0.5), weights=weights, method="inverted_cdf")
    covered, median = (float(value) for value in quantiles)
    scale = scale_of(calibration.floor, covered, median, n=len(cosines))
    report(scale, sets)
    if options.write:
        for file in SHIPPED.glob("*.json"):
            shipped = read_calibration(file)
            fitted = scale if file == LOCAL else starting_point(scale, shipped)
            file.write_text(to_json(replace(shipped, scale=fitted)), encoding="utf-8")


if __name__ == "__main__":
    main()
