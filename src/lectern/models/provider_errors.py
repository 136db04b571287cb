"""Where a provider's HTTP ends and Lectern's errors begin. Only the status, the headers that ask us to wait and a code
of plain letters cross this line: a provider's own words may quote the key that it was sent.

What the OpenAI SDK's errors mean for the caller, whoever called it. The SDK's own texts may quote the key.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

from lectern.domain.errors import ConfigError, ProviderError, ProviderRefused, ProviderTimeout, RateLimited

UNSAID_WAIT = 1.0  # seconds; a provider that limits us without saying for how long
SERVER_FAILED = 500
ACCESS_DENIED = (401, 403)
TOO_LATE = (408, 504)
TOO_MANY = 429
UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError)  # what SDKs stumble over in a mad answer
PASSING = (409, 425, 499)  # 4xx that speak of the moment, not of the request
PROVIDER = "openai"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def failure(
    provider: str, status: int, headers: Mapping[str, str], *, key_name: str, code: str | None = None
) -> ProviderError:
    """What an HTTP status means for the caller."""
    said = f"{status}, {code}" if code and re.fullmatch("[a-z]+(_[a-z]+)*", code) else f"{status}"
    wait = retry_after(headers)
    if code == "insufficient_quota":  # a 429 that no waiting mends
        return ProviderRefused(provider, f"has no quota left for this key ({said}); check the plan behind {key_name}")
    if status == TOO_MANY or (status >= SERVER_FAILED and wait is not None):
        return RateLimited(provider, UNSAID_WAIT if wait is None else wait)
    if status in TOO_LATE:
        return ProviderTimeout(provider, f"did not answer in time ({said}); try again")
    if status >= SERVER_FAILED or status in PASSING:
        return ProviderError(provider, f"failed ({said}); try again")
    if status in ACCESS_DENIED:
        return ProviderRefused(provider, f"refused access ({said}); check {key_name}")
    return ProviderRefused(provider, f"rejected the request ({said}); check the model's name and the base URL")


def unreadable(provider: str, exc: Exception) -> ProviderError:
    """An answer that the SDK cannot make sense of: cut short, from a proxy, or mad."""
    return ProviderError(provider, f"gave an answer that cannot be read ({type(exc).__name__}); try again")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the provider asks us to wait, in any of the three ways there are to say it."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _seconds(said)
    if seconds is None and said is not None:
        with suppress(ValueError, OverflowError):  # neither a number nor a date: it says nothing
            seconds = max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    return seconds


def _seconds(said: str | None) -> float | None:
    with suppress(TypeError, ValueError):
        number = float(said)  # type: ignore[arg-type]  # None is one of the things that are no number
        return number if math.isfinite(number) and number >= 0 else None
    return None


def checked_key(key: str, key_name: str) -> str:
    """The key, if it can stand in a header; an HTTP library's complaint would quote it."""
    key = key.strip()
    if not key:
        raise ConfigError(f"{key_name} is not set")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{key_name} holds characters that no key has; copy it again")
    return key


def checked_base_url(url: str, url_name: str) -> str:
    """The address, if it is one that can be logged; HTTP libraries log it whole, password and all."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        bare = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        good = bare = False
    if not good:
        raise ConfigError(f"{url_name} must be an http or https address")
    if not bare:
        raise ConfigError(f"{url_name} must hold no user, password or query; the key goes into its own setting")
    return url


def meaning(exc: OpenAIError) -> ProviderError:
    """One of ours for one of the SDK's."""
    if isinstance(exc, APITimeoutError):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, APIConnectionError):
        return ProviderError(PROVIDER, f"could not be reached, or broke off; check {URL_NAME} and the network")
    if isinstance(exc, APIStatusError):
        return failure(PROVIDER, exc.status_code, exc.response.headers, key_name=KEY_NAME, code=exc.code)
    return unreadable(PROVIDER, exc)
