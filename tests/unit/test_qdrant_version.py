"""Which Qdrant servers are used, which are warned of, and which are refused."""

from __future__ import annotations

import logging
import warnings

import pytest

from lectern.domain.errors import ConfigError
from lectern.index.nodes import OLDEST_RELEASE, TESTED_RELEASES, check_version, connect
from tests.qdrant_server import QdrantServer


def test_a_tested_server_is_used_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """Every release that the suite ran on."""
    for major, minor in TESTED_RELEASES:
        check_version(f"{major}.{minor}.3")
    assert caplog.records == []


@pytest.mark.parametrize("version", ["1.12.0", "1.15.5", "1.99.0", "2.0.0", "1.17.0-dev", "unknown"])
def test_a_server_that_was_never_tried_is_a_warning(version: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is used all the same; the log says its version and which were tested."""
    check_version(version)
    [line] = caplog.records
    assert line.levelno == logging.WARNING
    assert version in line.getMessage()
    assert "1.16" in line.getMessage()


@pytest.mark.parametrize("version", ["1.11.5", "1.9.0", "0.11.0"])
def test_a_server_that_is_too_old_is_refused_with_both_numbers(version: str) -> None:
    """Its own, and the one that is needed."""
    needed = ".".join(map(str, OLDEST_RELEASE))
    with pytest.raises(ConfigError, match=f"(?s){version}.*{needed}") as raised:
        check_version(version)
    assert "Upgrade" in str(raised.value)


async def test_the_clients_own_check_says_nothing(real_qdrant: QdrantServer) -> None:
    """It would print a warning from a thread whenever the client is newer than the server by two releases."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = connect(real_qdrant.url, None)
        version = (await client.info()).version
        await client.close()
    assert [str(warning.message) for warning in caught] == []
    check_version(version)
