"""The language model behind an endpoint: Responses where the host is OpenAI's own, Chat Completions anywhere else."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from openai import AsyncOpenAI, AsyncStream, NotGiven, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from lectern.openai_errors import KEY_NAME, URL_NAME
from lectern.provider_errors import checked_base_url, checked_key

BASE_URL = "https://api.openai.com/v1"
RETRIES = 2  # of a call, by the SDK, which honours Retry-After
_OPTIONS = {"extra_headers": "headers", "extra_query": "params", "extra_body": "extra_json", "timeout": "timeout"}


def client(api_key: str, base_url: str | None, timeout: float) -> AsyncOpenAI:
    """A client for an endpoint; to be closed at the end."""
    return _Client(
        api_key=checked_key(api_key, KEY_NAME),
        base_url=checked_base_url(base_url or BASE_URL, URL_NAME),
        timeout=timeout,
        max_retries=RETRIES,
    )


def is_openai(base_url: str | None) -> bool:
    """Whether the endpoint is OpenAI's own."""
    return urlsplit(base_url or BASE_URL).hostname == urlsplit(BASE_URL).hostname


class _Completions(AsyncCompletions):
    """Sends what it is given. The SDK's own holds every message against its types first, which for a book's passages
    took an eighth of a turn and changed nothing: what comes here is plain JSON already."""

    async def create(self, **wanted: Any) -> Any:  # noqa: ANN401  # the SDK has an overload for each way to ask
        """One completion, or its stream."""
        given = {name: value for name, value in wanted.items() if not isinstance(value, Omit | NotGiven)}
        chosen = {_OPTIONS[name]: given.pop(name) for name in _OPTIONS if name in given}
        options: Any = {name: value for name, value in chosen.items() if value is not None}
        options["security"] = {"bearer_auth": True}  # the key of this client, and no other that the environment holds
        return await self._client.post(
            "/chat/completions",
            cast_to=ChatCompletion,
            body=given,
            options=options,
            stream=bool(given.get("stream")),
            stream_cls=AsyncStream[ChatCompletionChunk],
        )


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Client(AsyncOpenAI):
    @cached_property
    def chat(self) -> AsyncChat:
        return _Chat(self)
