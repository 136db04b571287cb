"""What the OpenAI SDK's errors mean for the caller, whoever called it. The SDK's own texts may quote the key."""

from __future__ import annotations

from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

from lectern.domain.errors import ProviderError, ProviderTimeout
from lectern.provider_errors import failure, unreadable

PROVIDER = "openai"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def meaning(exc: OpenAIError) -> ProviderError:
    """One of ours for one of the SDK's."""
    if isinstance(exc, APITimeoutError):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, APIConnectionError):
        return ProviderError(PROVIDER, f"could not be reached, or broke off; check {URL_NAME} and the network")
    if isinstance(exc, APIStatusError):
        return failure(PROVIDER, exc.status_code, exc.response.headers, key_name=KEY_NAME, code=exc.code)
    return unreadable(PROVIDER, exc)
