"""Makes the shipped network that finds answers, with its card and checksum, in `models/local/weights/finder/`.

    PYTHONPATH=scripts python -m answer_locator.export WORK_FOLDER [TARGET_FOLDER]

reads `weights.npz`, `rows.jsonl.gz` and `measured.json` there. The environment is that of `scripts/export_minilm.py`;
how the graph is made is told in `minilm_graph.py`. torch only calibrates, on 200 passages, and says how much int8
changes. Running it again gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from answer_locator.rows import Row
from answer_locator.windows import windows
from pair_network import CALIBRATION, WEIGHTS, Array, Read, Teacher, ship
from row_files import read
from tokenizers import Tokenizer

NAME = "lectern-finder-int8"
SAMPLE_STEP = 211  # of so many rows one is taken

CARD = """\
# The network that finds answers, int8

| | |
|---|---|
| Origin | all-MiniLM-L6-v2, whose card and licence (Apache-2.0) are in the folder above; trained further by Lectern |
| Reads | English: a question, a heading and the pieces of a passage with a mark before each, 256 word pieces in all |
| Gives | two numbers a word piece; of the first: no piece answers; of each mark: the piece behind it answers |
| Log-odds | of a piece: its mark's number less the first |
| File | `{model}` (sha256 `{sha}`), {size:,} bytes |

## What it was trained on

Seed 1, four epochs, AdamW, bf16, cross-entropy over "none" and the pieces, to which a teacher's probabilities are mixed
(all-mpnet-base-v2, trained on the same rows in two folds; half of the target, .85 for rows that nobody read):

| Rows | Counting | |
|---|---|---|
{table}

The questions were written for this after a brief (`examples/golden/finder/written.jsonl`): for each passage three that
it answers, with the pieces that do, and two or three near misses that it does not. The passages are of
book-agentfactory, book-curriculum without its modules 2, 5 and 9, and seven question sets. Squad2's are of the half of
its articles that nothing is reported on. 3,197 questions are about 463 passages of twelve public manuals
(`manuals.jsonl`); their answers are whole lists, steps and listings, and they count twice. A tenth of the passages was
held out. The network has seen nothing of book-robolearn, book-handbook, the sample book or the other half of squad2.

## Measured

{measured}

{loud} neurons stay fp32. In int8 and fp32 the log-odds of {tested} pieces correlate at {correlation:.4f} and differ by
{difference:.2f} in the mean; their standard deviation is {spread:.2f}.

Made by `scripts/answer_locator/`; versions: {versions}.
"""


def read_by(row: Row, tokenizer: Tokenizer) -> Read:
    """The first window of a row, and its pieces' log-odds as `lectern.models.local.answer_locator` reckons them."""
    texts = tokenizer.encode_batch([row.question, row.heading, *row.pieces], add_special_tokens=False)
    question, heading, *pieces = (text.ids for text in texts)
    window = next(windows(question, heading, pieces))

    def log_odds(scores: Array) -> Array:
        odds: Array = scores[window.marks, 1] - scores[0, 0]
        return odds

    second = (np.arange(len(window.ids)) >= window.second).astype(np.int64)
    return Read(np.array([window.ids]), second[None], log_odds)


def main() -> None:
    """Export, compare, write."""
    folder, target = map(Path, (*sys.argv[1:], WEIGHTS / "finder")[:2])
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    rows = [row for row in read(folder / "rows.jsonl.gz", Row) if row.pieces]
    made_on, compared_on = (
        [read_by(row, tokenizer) for row in rows[first::SAMPLE_STEP][:CALIBRATION]] for first in (0, 1)
    )
    shipped = ship(Teacher(folder / "weights.npz", ("none", "mark")), NAME, target, made_on, compared_on)
    measured = json.loads((folder / "measured.json").read_text(encoding="utf-8"))["card"]
    card = CARD.format(model=f"{NAME}.onnx", table=table_of(rows), measured=measured, **shipped._asdict())
    (target / "MODEL_CARD.md").write_text(card, encoding="utf-8")


KINDS = {
    "own": "a written question and the passage that answers it",
    "near": "a near miss and the passage that it is near to",
    "removed": "a written question and its passage without what answers",
    "other": "a written question and passages that are next in meaning",
    "other-near": "a near miss and passages that are next in meaning",
    "squad": "qa-squad2, answerable",
    "squad-adv": "qa-squad2, made unanswerable by its authors",
    "squad-removed": "qa-squad2, the sentence with the answer left out",
    "nq": "qa-nq",
    "nq-removed": "qa-nq, the sentence with the answer left out",
}


def table_of(rows: list[Row]) -> str:
    """How many rows of each kind."""
    lines = []
    for kind, description in KINDS.items():
        kind_rows = [row for row in rows if row.kind == kind]
        lines.append(f"| {len(kind_rows):,} | {kind_rows[0].counts:g} | {description} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
