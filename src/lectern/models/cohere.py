"""Cohere's embeddings. The model is told whether a text is a passage or a question, and never cuts one: `truncate` is
NONE, so a text beyond its 512 tokens would be refused. Windows are therefore bounded by an estimate that guesses high.

A question beyond one window is still one vector, the mean of its windows': its end counts like its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice

import httpx
from cohere import AsyncClientV2
from cohere.core.api_error import ApiError
from cohere.core.parse_error import ParsingError

from lectern.domain.chunks import Vector
from lectern.domain.errors import ProviderError, ProviderTimeout
from lectern.models.batching import Batching, Numbered, Pace
from lectern.models.provider_errors import UNREADABLE, checked_base_url, checked_key, failure, unreadable
from lectern.models.windows import fitting, passages, token_pieces
from lectern.ports.index import Purpose

PROVIDER = "cohere"
MODEL = "embed-english-v3.0"
DIMENSIONS = 1024
BASE_URL = "https://api.cohere.com"
KEY_NAME, URL_NAME = "COHERE_API_KEY", "the base URL of Cohere"
INPUT_TYPE = {"passage": "search_document", "question": "search_query"}

WINDOW_TOKENS = 480  # estimated; the model reads 512, its own marks included
MOST_TEXTS = 96  # a request
MOST_BYTES = 1_000_000  # never reached by 96 windows
ERROR = 400


class CohereEmbedder:
    """Embeds over HTTP; to be closed at the end."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str = BASE_URL,
        model: str = MODEL,
        dimensions: int = DIMENSIONS,
        pace: Pace | None = None,
    ) -> None:
        pace = pace or Pace()
        self._http = httpx.AsyncClient(timeout=pace.longest_try)  # ours, because the SDK cannot close its own
        self._client = AsyncClientV2(
            api_key=checked_key(api_key, KEY_NAME),
            base_url=checked_base_url(base_url, URL_NAME),
            httpx_client=self._http,
            max_retries=0,  # ours would multiply with the SDK's
        )
        self._model = model
        self._batching = Batching(
            provider=PROVIDER, dimensions=dimensions, most_texts=MOST_TEXTS, most_bytes=MOST_BYTES, pace=pace
        )

    @property
    def fingerprint(self) -> str:
        """Provider, model and dimensions."""
        return f"{PROVIDER}/{self._model}/{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._batching.dimensions

    @property
    def languages(self) -> frozenset[str] | None:
        """English, unless the model's name says otherwise."""
        return frozenset({"en"}) if "english" in self._model else None

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """Trail and text in as many windows as the model needs to read all of it."""
        return passages(trail, text, limit=WINDOW_TOKENS, pieces=token_pieces)

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        """One vector a text, in the same order."""
        read = [fitting(text, WINDOW_TOKENS, token_pieces) for text in texts]
        vectors = iter(await self._batching.embed(list(chain(*read)), partial(self._send, purpose), purpose))
        return [_mean(list(islice(vectors, len(pieces)))) for pieces in read]

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def _send(self, purpose: Purpose, texts: Sequence[str]) -> Numbered:
        try:
            answer = await self._client.embed(
                texts=texts,
                model=self._model,
                input_type=INPUT_TYPE[purpose],
                embedding_types=["float"],
                truncate="NONE",
            )
        except (ApiError, httpx.HTTPError) as exc:
            raise _meaning(exc) from None  # the SDK's own texts may quote the key
        except (ParsingError, *UNREADABLE) as exc:
            raise unreadable(PROVIDER, exc) from None
        return _numbered(answer)


def _mean(vectors: Sequence[Vector]) -> Vector:
    return vectors[0] if len(vectors) == 1 else [sum(numbers) / len(vectors) for numbers in zip(*vectors, strict=True)]


def _numbered(answer: object) -> Numbered:
    rows = getattr(getattr(answer, "embeddings", None), "float_", None)  # the SDK hands on whatever came
    return list(enumerate(rows)) if isinstance(rows, list) else []


def _meaning(exc: ApiError | httpx.HTTPError) -> ProviderError:
    if isinstance(exc, httpx.TimeoutException):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, httpx.HTTPError):
        return ProviderError(PROVIDER, "could not be reached, or broke off; check the network")
    if exc.status_code is None or exc.status_code < ERROR:  # the SDK's word for an answer that is no JSON
        return unreadable(PROVIDER, exc)
    return failure(PROVIDER, exc.status_code, exc.headers or {}, key_name=KEY_NAME)
