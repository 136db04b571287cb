"""The language model behind an endpoint: Responses where the host is OpenAI's own, Chat Completions anywhere else."""

from __future__ import annotations

from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, OpenAIError

from lectern.domain.errors import ProviderError, ProviderTimeout
from lectern.provider_errors import checked_base_url, checked_key, failure, unreadable

PROVIDER = "openai"
BASE_URL = "https://api.openai.com/v1"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"
RETRIES = 2  # of a call, by the SDK, which honours Retry-After


def client(api_key: str, base_url: str | None, timeout: float) -> AsyncOpenAI:
    """A client for an endpoint; to be closed at the end."""
    return AsyncOpenAI(
        api_key=checked_key(api_key, KEY_NAME),
        base_url=checked_base_url(base_url or BASE_URL, URL_NAME),
        timeout=timeout,
        max_retries=RETRIES,
    )


def is_openai(base_url: str | None) -> bool:
    """Whether the endpoint is OpenAI's own."""
    return urlsplit(base_url or BASE_URL).hostname == urlsplit(BASE_URL).hostname


def meaning(exc: OpenAIError) -> ProviderError:
    """What the SDK's error means for the caller; its own texts may quote the key."""
    if isinstance(exc, APITimeoutError):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, APIConnectionError):
        return ProviderError(PROVIDER, f"could not be reached, or broke off; check {URL_NAME} and the network")
    if isinstance(exc, APIStatusError):
        return failure(PROVIDER, exc.status_code, exc.response.headers, key_name=KEY_NAME, code=exc.code)
    return unreadable(PROVIDER, exc)
