"""Where Qdrant's exceptions stop: above this line there are only Lectern's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from lectern.domain.errors import ProviderError, ProviderRefused, ProviderTimeout, RateLimited

PROVIDER = "qdrant"
BAD_REQUEST, SERVER_ERROR = 400, 500


@contextmanager
def speaking_lectern() -> Iterator[None]:
    """Turn whatever the client raises into an error that says what to do."""
    try:
        yield
    except ResourceExhaustedResponse as exc:
        raise RateLimited(PROVIDER, float(exc.retry_after_s)) from exc
    except UnexpectedResponse as exc:
        status = exc.status_code or SERVER_ERROR
        if BAD_REQUEST <= status < SERVER_ERROR:
            raise ProviderRefused(PROVIDER, f"refused ({status}); check QDRANT_URL and QDRANT_API_KEY") from exc
        raise ProviderError(PROVIDER, f"failed ({status}); try again") from exc
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:  # which the client lets through
        raise ProviderError(PROVIDER, "gave an answer that cannot be read; check that QDRANT_URL is a Qdrant") from exc
    except ResponseHandlingException as exc:
        if isinstance(exc.source, httpx.TimeoutException):
            raise ProviderTimeout(PROVIDER, "did not answer in time; try again") from exc
        raise ProviderError(PROVIDER, "could not be reached; check QDRANT_URL and that the server runs") from exc
