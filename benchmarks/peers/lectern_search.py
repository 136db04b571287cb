"""Lectern's own searches, asked like the peers': a new process opens a filled LECTERN_HOME through the Python API. For
command line and output see `measuring.py`; ingesting is the terminal command's business and measured there. The API is
async, so the questions are asked from within one event loop, as a server would.

    python lectern_search.py HOME --queries FILE
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import measuring

from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.models.local.packaged_models import TOKENIZER, WEIGHTS


async def ask_all() -> dict[str, Any]:
    """Ask the only book of a home."""
    options = measuring.command_line()
    async with open_lectern(Settings(home=options.store), create=False) as lectern:

        async def search(question: str) -> int:
            return len((await lectern.search(question, limit=measuring.LIMIT)).hits)

        figures = await measuring.searched_async(search, measuring.questions(options.queries), options.begun)
        figures["pieces"] = figures["pieces_read"] = await pieces(lectern)
    return figures


async def pieces(lectern: Lectern) -> int:
    """How many word pieces were embedded, the trail that each window begins with included."""
    embedder = lectern.app.ingest_deps.collections.current.embedder
    chunks = [stored.chunk for stored in await lectern.app.library.chunks()]
    windows = [window for chunk in chunks for window in embedder.passages(chunk.trail, chunk.text)]
    return sum(measuring.pieces(windows, WEIGHTS / TOKENIZER))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ask_all())))
