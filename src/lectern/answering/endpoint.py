"""The language model behind an endpoint: Responses where the host is OpenAI's own, Chat Completions anywhere else."""

from __future__ import annotations

from urllib.parse import urlsplit

from openai import AsyncOpenAI

from lectern.openai_errors import KEY_NAME, URL_NAME
from lectern.provider_errors import checked_base_url, checked_key

BASE_URL = "https://api.openai.com/v1"
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
