"""The parts that settings choose between: who embeds, and where chunks are kept. Each vendor is imported only when it
is named."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.errors import ConfigError
from lectern.home import Home
from lectern.ports import ChunkIndex, Embedder
from lectern.settings import Settings

KEY_LENGTH = 40


class Parts:
    """Builds parts, and closes them with the stack."""

    def __init__(
        self, settings: Settings, home: Home, engine: AsyncEngine, stack: AsyncExitStack, *, serving: bool = False
    ) -> None:
        self.settings = settings
        self.serving = serving
        self._home = home
        self.engine = engine
        self._stack = stack

    def embedder(self, name: str | None = None) -> Embedder:
        """The embedder of this name, or the one that the settings name."""
        match name or self.settings.embedder:
            case "local":
                from lectern.embedders.minilm import LocalEmbedder

                return LocalEmbedder()
            case "openai":
                return self._openai()
            case "cohere":
                return self._cohere()
            case other:
                raise ConfigError(f"there is no embedder {other!r}; LECTERN_EMBEDDER is local, openai or cohere")

    def embedder_of(self, fingerprint: str) -> Embedder:
        """The embedder behind a fingerprint, if it can run here."""
        embedder = self.embedder(fingerprint.partition("/")[0])
        if embedder.fingerprint != fingerprint:
            raise ConfigError(f"here it would be {embedder.fingerprint!r}")
        return embedder

    def _openai(self) -> Embedder:
        from lectern.embedders.openai import BASE_URL, OpenAIEmbedder

        embedder = OpenAIEmbedder(openai_key(self.settings), base_url=self.settings.openai_base_url or BASE_URL)
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def _cohere(self) -> Embedder:
        from lectern.embedders.cohere import CohereEmbedder

        if self.settings.cohere_api_key is None:
            raise ConfigError("the embedder 'cohere' needs COHERE_API_KEY")
        embedder = CohereEmbedder(self.settings.cohere_api_key.get_secret_value(), model=self.settings.cohere_model)
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def index(self, collection: str, dimensions: int | None) -> AbstractAsyncContextManager[ChunkIndex]:
        """The index of a collection: on the server that QDRANT_URL names, else in the home."""
        if self.settings.qdrant_url is None:
            from lectern.index.edge import open_edge_index

            return open_edge_index(self._home.indexes, collection, dimensions, serving=self.serving)
        from lectern.index.server import connect, open_server_index
        from lectern.records.ledger import SqlGenerations

        key = self.settings.qdrant_api_key
        client = connect(self.settings.qdrant_url, key.get_secret_value() if key else None)
        return open_server_index(client, collection, dimensions, SqlGenerations(self.engine, collection))


def openai_key(settings: Settings) -> str:
    """The key for OpenAI, whose keys have a shape; a compatible endpoint has keys of its own, or none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
    if settings.openai_base_url is not None:
        return key or "none"
    if not key.startswith("sk-") or len(key) < KEY_LENGTH:
        raise ConfigError(
            f"OPENAI_API_KEY is missing or not of OpenAI's shape (sk-…, {KEY_LENGTH} characters or more); "
            "for another endpoint set OPENAI_BASE_URL too"
        )
    return key
