"""Turns HTTP errors of providers, and exceptions of the OpenAI SDK, into errors of Lectern. An error takes over the
status, the time to wait and a code of plain letters. It takes over no message of a provider or SDK, because a message
may quote the key.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    DefaultAsyncHttpxClient,
    OpenAIError,
)

from lectern.domain.errors import ConfigError, ProviderError, ProviderRefused, ProviderTimeout, RateLimited

DEFAULT_WAIT = 1.0  # seconds, if a provider limits requests and does not say for how long
SERVER_ERROR = 500
DENIED_STATUSES = (401, 403)
TIMEOUT_STATUSES = (408, 504)
TOO_MANY_REQUESTS = 429
UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError)  # what SDKs raise on an answer of the wrong shape
TRANSIENT_STATUSES = (409, 425, 499)  # 4xx that may not recur when the request is sent again
CODE_STATUSES = {  # of error objects inside an answer
    "insufficient_quota": TOO_MANY_REQUESTS,
    "rate_limit_exceeded": TOO_MANY_REQUESTS,
    "rate_limit_error": TOO_MANY_REQUESTS,
    "overloaded_error": SERVER_ERROR,
    "server_error": SERVER_ERROR,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "model_not_found": 404,
}
PROVIDER = "openai"
BASE_URL = "https://api.openai.com/v1"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def status_error(
    provider: str, status: int, headers: Mapping[str, str], *, key_name: str, code: str | None = None
) -> ProviderError:
    """The error for an HTTP status."""
    cause = f"{status}, {code}" if code and re.fullmatch("[a-z]+(_[a-z]+)*", code) else f"{status}"
    wait = retry_after(headers)
    if code == "insufficient_quota":  # a 429 for which waiting does not help
        return ProviderRefused(provider, f"has no quota left for this key ({cause}); check the plan behind {key_name}")
    if status == TOO_MANY_REQUESTS or (status >= SERVER_ERROR and wait is not None):
        return RateLimited(provider, DEFAULT_WAIT if wait is None else wait)
    if status in TIMEOUT_STATUSES:
        return ProviderTimeout(provider, f"did not answer in time ({cause}); try again")
    if status >= SERVER_ERROR or status in TRANSIENT_STATUSES:
        return ProviderError(provider, f"failed ({cause}); try again")
    if status in DENIED_STATUSES:
        return ProviderRefused(provider, f"refused access ({cause}); check {key_name}")
    return ProviderRefused(provider, f"rejected the request ({cause}); check the model's name and the base URL")


def unreadable_answer(provider: str, exc: Exception) -> ProviderError:
    """The error for an answer that the SDK cannot parse: it was cut off, came from a proxy, or has the wrong shape."""
    return ProviderError(provider, f"gave an answer that cannot be read ({type(exc).__name__}); try again")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the provider asks to wait: in milliseconds, in seconds, or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is None and value is not None:
        with suppress(ValueError, OverflowError):  # neither a number nor a date
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return seconds


def _seconds(value: str | None) -> float | None:
    with suppress(TypeError, ValueError):
        number = float(value)  # type: ignore[arg-type]  # None raises TypeError
        return number if math.isfinite(number) and number >= 0 else None
    return None


def check_key(key: str, key_name: str) -> str:
    """The key, if it can be sent in a header. An HTTP library's own error would quote the key."""
    key = key.strip()
    if not key:
        raise ConfigError(f"{key_name} is not set")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{key_name} holds characters that no key has; copy it again")
    return key


def check_base_url(url: str, url_name: str) -> str:
    """The address, if it holds no secret: HTTP libraries log the whole address."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname)
        no_secret = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        is_http = no_secret = False
    if not is_http:
        raise ConfigError(f"{url_name} must be an http or https address")
    if not no_secret:
        raise ConfigError(f"{url_name} must hold no user, password or query; the key goes into its own setting")
    return url


def http_client(timeout: float) -> DefaultAsyncHttpxClient:
    """An HTTP client that follows no redirect: the key and the reader's text are for the address that was set."""
    return DefaultAsyncHttpxClient(timeout=timeout, follow_redirects=False)


def is_openai(base_url: str | None) -> bool:
    """Whether an endpoint is OpenAI's own."""
    return urlsplit(base_url or BASE_URL).hostname == urlsplit(BASE_URL).hostname


@contextmanager
def errors_of(base_url: str) -> Iterator[None]:
    """Errors of this block name the endpoint by its host, unless it is OpenAI's own."""
    try:
        yield
    except ProviderError as exc:
        name_endpoint(exc, base_url)
        raise


def name_endpoint(error: ProviderError, base_url: str) -> ProviderError:
    """The error, which names the endpoint by its host, unless it is OpenAI's own."""
    if error.provider == PROVIDER and not is_openai(base_url):
        error.rename(urlsplit(base_url).netloc)
    return error


def sdk_error(exc: OpenAIError) -> ProviderError:
    """The error of Lectern for an exception of the OpenAI SDK."""
    if isinstance(exc, APITimeoutError):
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if isinstance(exc, APIConnectionError):
        return ProviderError(PROVIDER, f"could not be reached, or broke off; check {URL_NAME} and the network")
    if isinstance(exc, APIStatusError):
        return status_error(PROVIDER, exc.status_code, exc.response.headers, key_name=KEY_NAME, code=exc.code)
    if type(exc) is APIError:  # an error object in a stream
        return error_in_answer(exc.body)
    return unreadable_answer(PROVIDER, exc)


def error_in_answer(error: object) -> ProviderError:
    """The error of Lectern for an error object that came inside an answer with status 200."""
    code = error.get("code") if isinstance(error, Mapping) else getattr(error, "code", None)
    kind = error.get("type") if isinstance(error, Mapping) else None
    code = code if code is not None else kind
    if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()):
        status = int(code)
        return status_error(PROVIDER, status if status in range(400, 600) else SERVER_ERROR, {}, key_name=KEY_NAME)
    if isinstance(code, str) and code in CODE_STATUSES:
        return status_error(PROVIDER, CODE_STATUSES[code], {}, key_name=KEY_NAME, code=code)
    return ProviderError(PROVIDER, "failed while it answered; ask again")
