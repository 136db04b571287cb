"""Nine real states of a real book, replayed: after each the index equals a fresh ingest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SHARED_DATA
from tests.ingest_parts import agreement, content, open_ingest_parts, run

HISTORY = SHARED_DATA / "book-robolearn" / "history"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not HISTORY.is_dir(), reason="the shared books are not beside this checkout"),
]


async def test_every_state_equals_a_fresh_ingest_and_the_last_embeds_nothing(tmp_path: Path) -> None:
    """Renames, additions and edits of an author: id by id, field by field; an unchanged state embeds nothing."""
    states = sorted(folder / "docs" for folder in HISTORY.iterdir() if folder.is_dir())
    assert len(states) == 9
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        for number, state in enumerate(states):
            job = await run(ingest_deps, state)
            await agreement(ingest_deps)
            async with open_ingest_parts(tmp_path / f"fresh-{number}") as fresh:
                await run(fresh, state)
                assert await content(ingest_deps) == await content(fresh), state

    assert (job.chunks_embedded, job.chunks_created, job.chunks_deleted) == (0, 0, 0)
