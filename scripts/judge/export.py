"""Makes the shipped network of the judge, its card and its checksum, in `src/lectern/models/local/weights/judge/`.

    PYTHONPATH=scripts python -m judge.export WORK_FOLDER [TARGET_FOLDER]

reads `weights.npz` and the cases there. The environment is that of `scripts/export_minilm.py`; how the graph is made is
told in `minilm_graph.py`. torch only calibrates, on 200 statements of rounds 1 and 2, and says how much int8 changes.
Running it again gives the same bytes; other statements give slightly other ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from judge.encoding import LONGEST, MARKS, OPENS, PARTS, WINDOW
from judge.rows import Row
from pair_network import CALIBRATION, WEIGHTS, Array, Read, Teacher, ship
from row_files import read
from tokenizers import Tokenizer

NAME = "lectern-judge-int8"
SAMPLE_STEP = 37  # of so many statements one is taken

CARD = """\
# The judge's network, int8

| | |
|---|---|
| Origin | all-MiniLM-L6-v2, whose card and licence (Apache-2.0) are in the folder above; trained further by Lectern |
| Reads | English: a statement of at most 80 word pieces and its evidence, together 256 with three marks |
| Gives | two numbers a piece; of the first: the whole is borne out; of each of the statement's: this piece is wrong |
| Log-odds | the first, less the soft maximum (log-sum-exp) of the others |
| File | `{model}` (sha256 `{sha}`), {size:,} bytes |

## What it was trained on

By labels and by a teacher, four epochs each, AdamW, bf16, seed 1. The teacher is all-mpnet-base-v2 (Apache-2.0, 110
million weights, not shipped), trained on the same rows with up to 300 words of evidence: one epoch of stage 1, then
1.5 to 1.7 of stage 2 (of three that were meant). Four teachers, each without one fold of passages and
answers, speak only of the rows that they have not seen. A target is the label and the chance that the teacher gives,
half and half (.4 and .6 in stage 1); where there is no label, the teacher's alone.

| Stage | Rows | |
|---|---|---|
| 1. synthetic | 189,763 | of three books and seven question sets, reworded or made false by a program |
| 1. harvested | 21,416 | lines of summaries, quizzes and long answers, and the same made false |
| 2. written | 20,894 | 10,447 pairs, true and falsified: rounds 1 to 3 of `written.jsonl` |
| 2. sample book | 963 | `pairs.jsonl` and `fresh.jsonl` |
| 2. ground sets | {ground:,} | the `fit` halves of ground-wice, ground-fm2 and ground-halueval |
| 2. answers | 8,246 | claims of 401 answers as language models write them and falsified ones, on six books |
| 2. made of these | 47,828 | two as one, longer evidence; 23,731 unlabelled: falsified by a program, other evidence |
| 2. mixed in | 23,000 | of stage 1, and true statements with the evidence of others |

Claims of answers are there twice: with evidence of the passages that they cite, and of all ten that the model was
given. The written statements counted 1, claims with cited evidence 1, with all .7, the ground sets .7, the rest .3 to
.5. The network has seen neither `held_out.jsonl`, nor book-handbook, nor the other halves of the ground sets, nor the
answers that are measured. Of their four books it has seen one: the sample book.

## Measured

AUROC of the log-odds alone, by networks that had not seen the passage or answer: .886 on 20,894 written statements,
.896 on 963 about the sample book, .902 on 3,621 claims of answers with their cited evidence (others about the same
books were seen). With evidence about something else it may say yes: it is one voice among the judge's rules, which
`docs/benchmarks/judge.md` measures. {loud} neurons stay fp32. In int8 and fp32 the log-odds of {tested} statements
correlate at {correlation:.4f} and differ by {difference:.2f} in the mean; their standard deviation is {spread:.2f}.

Made by `scripts/judge/`; versions: {versions}.
"""


def read_by(row: Row, tokenizer: Tokenizer) -> Read:
    """A statement and its evidence, and its log-odds as `lectern.embedders.entailment` reckons them."""
    statement_ids, theirs = (
        tokenizer.encode(text, add_special_tokens=False).ids for text in (row.statement, row.evidence)
    )
    statement_ids = statement_ids[:LONGEST]
    theirs = theirs[: WINDOW - MARKS - len(statement_ids)]
    second = [0] * (len(statement_ids) + 2) + [1] * (len(theirs) + 1)

    def log_odds(scores: Array) -> Array:
        return np.array([scores[0, 0] - np.logaddexp.reduce(scores[1 : len(statement_ids) + 1, 1])])

    return Read(np.array([[OPENS, *statement_ids, PARTS, *theirs, PARTS]]), np.array([second]), log_odds)


def main() -> None:
    """Export, compare, write."""
    folder, target = map(Path, (*sys.argv[1:], WEIGHTS / "judge")[:2])
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    rows = [row for row in read(folder / "written.jsonl.gz", Row) if row.part != "3"]
    made_on, compared_on = (
        [read_by(row, tokenizer) for row in rows[first::SAMPLE_STEP][:CALIBRATION]] for first in (0, 1)
    )
    shipped = ship(Teacher(folder / "weights.npz", ("head", "token")), NAME, target, made_on, compared_on)
    ground = sum(row.part == "fit" for file in folder.glob("ground-*.gz") for row in read(file, Row))
    card = CARD.format(model=f"{NAME}.onnx", ground=ground, **shipped._asdict())
    (target / "MODEL_CARD.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
