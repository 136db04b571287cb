"""Cohere's embeddings. A request says whether its texts are passages or questions. `truncate` is NONE, so the model
refuses a text over 512 tokens instead of cutting it. The size of a window is therefore an estimate that is too
high rather than too low.

A question that needs several windows gets one vector, the mean of theirs, so that its end counts like its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

import httpx
from cohere import AsyncClientV2
from cohere.core.api_error import ApiError
from cohere.core.parse_error import ParsingError

from lectern.domain.chunks import Vector
from lectern.domain.errors import ProviderError, ProviderTimeout
from lectern.models.batching import PROBE, BatchEmbedding, BatchOptions, NumberedVectors
from lectern.models.provider_errors import UNREADABLE, check_base_url, check_key, status_error, unreadable_answer
from lectern.models.windows import passages, split_to_fit, token_pieces
from lectern.ports.index import Purpose

PROVIDER = "cohere"
MODEL = "embed-english-v3.0"
DIMENSIONS = 1024
BASE_URL = "https://api.cohere.com"
KEY_NAME, URL_NAME = "COHERE_API_KEY", "the base URL of Cohere"
INPUT_TYPE = {"passage": "search_document", "question": "search_query"}

WINDOW_TOKENS = 480  # estimated; the model reads 512, special tokens included
MAX_TEXTS = 96  # of a request
MAX_BYTES = 1_000_000  # never reached by 96 windows
FIRST_ERROR_STATUS = 300  # no redirect is followed


class CohereEmbedder:
    """Embeds texts over HTTP; the caller closes it."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str = BASE_URL,
        model: str = MODEL,
        dimensions: int | None = None,
        options: BatchOptions | None = None,
    ) -> None:
        options = options or BatchOptions()
        # our own HTTP client, because the SDK cannot close its own
        self._http = httpx.AsyncClient(timeout=options.longest_timeout)
        self._client = AsyncClientV2(
            api_key=check_key(api_key, KEY_NAME),
            base_url=check_base_url(base_url, URL_NAME),
            httpx_client=self._http,
            max_retries=0,  # the retries of `BatchEmbedding` would multiply with the SDK's
        )
        self._model = model
        known = DIMENSIONS if model == MODEL else None
        self._batches = BatchEmbedding(
            provider=PROVIDER, dimensions=dimensions or known, max_texts=MAX_TEXTS, max_bytes=MAX_BYTES, options=options
        )

    @property
    def fingerprint(self) -> str:
        """Provider, model and dimensions."""
        return f"{PROVIDER}/{self._model}/{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of every vector; `ask_dimensions` comes first if the model is not the default one."""
        if self._batches.dimensions is None:
            raise RuntimeError(f"the dimensions of {self._model!r} were not asked for")
        return self._batches.dimensions

    async def ask_dimensions(self) -> None:
        """Ask the provider once how long the model's vectors are, if that is not known."""
        if self._batches.dimensions is None:
            [vector] = await self.embed([PROBE], purpose="question")
            self._batches = replace(self._batches, dimensions=len(vector))

    @property
    def languages(self) -> frozenset[str] | None:
        """English, unless the model's name says otherwise."""
        return frozenset({"en"}) if "english" in self._model else None

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """Trail and text of a chunk, in as many windows as the model needs to read all of it."""
        return passages(trail, text, limit=WINDOW_TOKENS, pieces=token_pieces)

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        """One vector for each text, in the same order."""
        windows = [split_to_fit(text, WINDOW_TOKENS, token_pieces) for text in texts]
        vectors = iter(await self._batches.embed(list(chain(*windows)), partial(self._send, purpose), purpose))
        return [_mean(list(islice(vectors, len(parts)))) for parts in windows]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, purpose: Purpose, texts: Sequence[str]) -> NumberedVectors:
        try:
            answer = await self._client.embed(
                texts=texts,
                model=self._model,
                input_type=INPUT_TYPE[purpose],
                embedding_types=["float"],
                truncate="NONE",
            )
        except (ApiError, httpx.HTTPError) as exc:
            raise _provider_error(exc) from None  # the SDK's own texts may quote the key
        except (ParsingError, *UNREADABLE) as exc:
            raise unreadable_answer(PROVIDER, exc) from None
        return _numbered_vectors(answer)


def _mean(vectors: Sequence[Vector]) -> Vector:
    return vectors[0] if len(vectors) == 1 else [sum(numbers) / len(vectors) for numbers in zip(*vectors, strict=True)]


def _numbered_vectors(answer: object) -> NumberedVectors:
    rows = getattr(getattr(answer, "embeddings", None), "float_", None)  # the SDK does not check the type of an answer
    return list(enumerate(rows)) if isinstance(rows, list) else []


def _provider_error(exc: ApiError | httpx.HTTPError) -> ProviderError:
    if isinstance(exc, httpx.TimeoutException):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, httpx.HTTPError):
        return ProviderError(PROVIDER, "could not be reached, or broke off; check the network")
    # the SDK raises without an error status if an answer is not JSON
    if exc.status_code is None or exc.status_code < FIRST_ERROR_STATUS:
        return unreadable_answer(PROVIDER, exc)
    return status_error(PROVIDER, exc.status_code, exc.headers or {}, key_name=KEY_NAME)
