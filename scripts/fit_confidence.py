"""Fits the shipped parameters of `confidence/calibrations`, and says how well they do where they were not fitted.

    python scripts/fit_confidence.py DATA --work FOLDER [--write] [--pictures FOLDER]

DATA holds the question sets; FOLDER keeps indexes and signals between runs. Reported: weights fitted on one half of the
questions (by a hash of their text, so that a question asked of several books is on one side) on the other half; and
leave one book out. The shipped weights are fitted on all. Nothing is random but what has a seed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from confidence_trials import Trial, trials

import lectern
from lectern import Settings, open_lectern
from lectern.app.lectern import Lectern
from lectern.confidence import signals
from lectern.confidence.calibration import GENERIC, SHIPPED, Calibration, Labelled, fit, read_calibration, to_json
from lectern.confidence.scores import auroc, ece, interval, share_below
from lectern.confidence.signals import CONFIDENCE_HITS, Signals, signals_of
from lectern.domain.evidence import LOW
from lectern.evals.refusal_picture import draw_chart
from lectern.text import words as text_words

LOCAL = "local/all-MiniLM-L6-v2-int8/384"
BOOKS = ("robolearn", "handbook", "curriculum", "squad2")
SMALL_SHARE = 0.25  # of a book's say that its small parts have
OWN_TIERS = ("uncovered", "unanswerable", "near")  # tiers that are one book's alone
WORDS = ("covered", "together", "pairs")  # signals that need no cosine
FROM = (
    "Fitted by scripts/fit_confidence.py on four books (robolearn, handbook, curriculum, either half of squad2) "
    "and small parts of them; each book, class and tier has the same say, small parts a quarter. "
    "Figures: docs/benchmarks/confidence.md."
)
STARTS = {  # fingerprint, cosines that count 0 and 1, floor
    "openai": ("openai/text-embedding-3-small/1536", 0.05, 1.0, 0.1),
    "cohere": ("cohere/embed-english-v3.0/1024", 0.2, 0.9, 0.2),
}
START = (
    "A starting point, not fitted: the local embedder's weights, with cosines stretched from the range that this "
    "model is known to use to the local one's. `lectern calibrate BOOK` replaces it by a fit on your book."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question asked of a book."""

    trial: Trial
    text: str
    covered: bool
    tier: str
    signals: Signals
    gold: float | None
    answered: bool  # an answer that the question's own set knows stands in a hit, so "uncovered" may be wrong

    @property
    def first_half(self) -> bool:
        """On which side the question is, in whatever book it is asked."""
        return zlib.crc32(self.text.encode()) % 2 == 0


async def ask_all(data: Path, work: Path) -> list[Row]:
    """Every question of every trial, through the real pipeline; answers are kept for the same code and questions."""
    rows: list[Row] = []
    async with open_lectern(Settings(home=work / "home")) as opened:
        for trial in trials(data):
            cache_file = work / "rows" / f"{trial.name}-{_digest(trial)}.json"
            if not cache_file.exists():
                cache_file.parent.mkdir(parents=True, exist_ok=True)
                cache_file.write_text(json.dumps(await _ask(opened, trial, work)), encoding="utf-8")
                print(f"asked {trial.name}", flush=True)
            cached_rows = json.loads(cache_file.read_text(encoding="utf-8"))
            for question, (signals, gold, answered) in zip(trial.questions, cached_rows, strict=True):
                values = {
                    "text": question.text,
                    "covered": question.covered,
                    "tier": question.tier,
                    "answered": answered,
                }
                rows.append(Row(trial=trial, signals=Signals(**signals), gold=gold, **values))
    return rows


async def _ask(opened: Lectern, trial: Trial, work: Path) -> list[tuple[dict[str, float], float | None, bool]]:
    folder = work / "books" / trial.name
    for path, content in trial.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    await opened.ingest(folder, book=trial.name)
    rows = []
    for question in trial.questions:
        findings = await opened.search(question.text[:1000], book=trial.name, limit=CONFIDENCE_HITS)
        gold = [hit.similarity for hit in findings.hits if hit.chunk.source_file in question.gold]
        texts = [_plain(hit.chunk.text) for hit in findings.hits]
        answered = any(_plain(answer) in text for answer in question.answers for text in texts)
        rows.append((asdict(signals_of(question.text, findings.hits)), max(gold, default=None), answered))
    return rows


def _plain(text: str) -> str:
    """Words alone, with a space on either side, so that `1` is not found in `1901`."""
    words = re.findall(r"[^\W_]+", text.lower())
    return f" {' '.join(words)} "


def _digest(trial: Trial) -> str:
    package = Path(lectern.__file__).parent
    code = [
        Path(signals.__file__),
        Path(text_words.__file__),
        text_words.COMMON_STEMS_FILE,
        *sorted((package / "retrieval").glob("*.py")),
    ]
    parts = [file.read_bytes() for file in code]
    parts += [repr((question.text, question.answers)).encode() for question in trial.questions]
    parts += [path.encode() + content for path, content in sorted(trial.files.items())]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


def fitted(rows: Sequence[Row], fingerprint: str = LOCAL, names: Sequence[str] = signals.NAMES) -> Calibration:
    """Weights from rows that are certain; every book, class and tier has the same say."""
    sure = [row for row in rows if row.trial.fitted and row.tier not in row.trial.doubtful]
    cells: dict[tuple[Any, ...], int] = {}
    for row in sure:
        cells[_cell(row)] = cells.get(_cell(row), 0) + 1
    tiers = {cell[:3]: sum(other_cell[:3] == cell[:3] for other_cell in cells) for cell in cells}
    labelled = [
        Labelled(
            signals=row.signals,
            covered=row.covered,
            gold=row.gold,
            weight=(SMALL_SHARE if row.trial.small else 1 - SMALL_SHARE) / tiers[_cell(row)[:3]] / cells[_cell(row)],
        )
        for row in sure
    ]
    return fit(labelled, fingerprint=fingerprint, notes=FROM, signals=names)


def _cell(row: Row) -> tuple[Any, ...]:
    return row.trial.book, row.trial.small, row.covered, row.tier


def chances(calibration: Calibration, rows: Sequence[Row]) -> tuple[Any, Any]:
    """Probabilities and labels."""
    return np.array([calibration.of(row.signals) for row in rows]), np.array([float(row.covered) for row in rows])


def refused(calibration: Calibration, rows: Sequence[Row]) -> str:
    """The share below the cut, with its interval."""
    values, labels = chances(calibration, rows)
    low, high = interval(lambda sample, _: share_below(sample, LOW), values, labels)
    return f"{share_below(values, LOW):.1%} of {len(rows)} ({low:.1%}-{high:.1%})"


def report(title: str, calibration: Calibration, rows: Sequence[Row], against: Callable[[Row], bool]) -> None:
    """Refusals by tier, AUROC and calibration error of covered questions against those that `against` picks."""
    print(f"\n{title}")
    for tier in ("in-book", *sorted({row.tier for row in rows if not row.covered})):
        tier_rows = [
            row for row in rows if (row.covered if tier == "in-book" else row.tier == tier and not row.covered)
        ]
        print(f"  refused {tier:<13} {refused(calibration, tier_rows)}")
        if any(row.answered for row in tier_rows):
            rest = [row for row in tier_rows if not row.answered]
            print(f"    no answer in any hit {refused(calibration, rest)}")
    values, labels = chances(calibration, [row for row in rows if row.covered or against(row)])
    for name, figure in (("AUROC", auroc), ("ECE", ece)):
        low, high = interval(figure, values, labels)
        print(f"  {name:<5} {figure(values, labels):.4f} ({low:.4f}-{high:.4f})")


def halves(rows: Sequence[Row], pictures: Path | None) -> None:
    """Fitted on one half of the questions, reported on the other."""
    calibration = fitted([row for row in rows if row.first_half])
    rest = [row for row in rows if not row.first_half]
    for name in ("robolearn-whole", "robolearn"):
        trial_rows = [row for row in rest if row.trial.name == name]
        report(f"{name}, other half", calibration, trial_rows, lambda row: row.tier in ("far", "mid"))
    for name in ("squad2", "squad2-rest"):
        squad = [row for row in rest if row.trial.name == name]
        report(f"{name}, other half", calibration, squad, lambda row: row.tier == "uncovered")
        values, labels = chances(calibration, [row for row in squad if row.covered or row.tier == "unanswerable"])
        low, high = interval(auroc, values, labels)
        print(f"  AUROC against unanswerable {auroc(values, labels):.4f} ({low:.4f}-{high:.4f})")
    golden(rows, calibration)
    if pictures is not None:
        for name, tiers in (("robolearn-whole", ("far", "mid")), ("squad2", ("uncovered",))):
            shown_rows = [row for row in rest if row.trial.name == name and (row.covered or row.tier in tiers)]
            title = f"{name.partition('-')[0]}: {len(shown_rows)} questions, fitted on the other half"
            file = pictures / f"confidence-{name.partition('-')[0]}.svg"
            file.write_text(draw_chart(title, *chances(calibration, shown_rows)), encoding="utf-8")


def golden(rows: Sequence[Row], calibration: Calibration) -> None:
    """The sample book, on which nothing was fitted, whole and in parts of five files."""
    for small in (False, True):
        size_rows = [row for row in rows if row.trial.book == "sample" and row.trial.small == small]
        title = "sample book, five files at a time" if small else "sample book"
        report(title, calibration, size_rows, lambda row: row.tier in ("far", "mid"))
        for kind in sorted({row.tier for row in size_rows if row.covered}):
            print(f"    {kind:<12} {refused(calibration, [row for row in size_rows if row.tier == kind])}")


def leave_one_out(rows: Sequence[Row]) -> None:
    """Fitted without a book, its parts and its questions, and asked of it. Questions that no book covers are shared by
    several: those of the first half are fitted on, those of the other half reported."""
    for book in BOOKS:
        own_texts = {row.text for row in rows if row.trial.book == book and (row.covered or row.tier in OWN_TIERS)}
        other_rows = [row for row in rows if row.trial.book != book and row.text not in own_texts]
        calibration = fitted([row for row in other_rows if row.covered or row.first_half])
        for small in (False, True):
            book_rows = [
                row for row in rows if row.trial.book == book and row.trial.small == small and row.trial.fitted
            ]
            title = f"{book}, fitted without it{', in small parts' if small else ''}"
            shown_rows = [row for row in book_rows if row.covered or row.tier in OWN_TIERS or not row.first_half]
            report(title, calibration, shown_rows, lambda row: row.tier not in row.trial.doubtful)


def shipped(rows: Sequence[Row]) -> dict[str, Calibration]:
    """What the package carries."""
    local = fitted(rows)
    calibrations = {"local": local, "generic": replace(fitted(rows, GENERIC, WORDS), floor=0.0)}
    for name, (fingerprint, zero, one_cosine, floor) in STARTS.items():
        calibrations[name] = replace(
            local, fingerprint=fingerprint, zero=zero, one=one_cosine, floor=floor, n=0, notes=START
        )
    return calibrations


def main() -> None:
    """Ask, report, and write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(ask_all(options.data, options.work))
    halves(rows, options.pictures)
    leave_one_out(rows)
    for name, calibration in shipped(rows).items():
        print(f"\n{name}: {calibration}")
        if options.write:
            file = SHIPPED / f"{name}.json"
            scale = read_calibration(file).scale  # scripts/fit_relevance.py fits it
            file.write_text(to_json(replace(calibration, scale=scale)), encoding="utf-8")


if __name__ == "__main__":
    main()
