"""Lectern's own searches, asked like the peers': a new process opens a filled LECTERN_HOME through the Python API. For
command line and output see `measuring.py`; ingesting is the terminal command's business and measured there.

    python lectern_search.py HOME --queries FILE
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import measuring

from lectern.embedders.minilm import TOKENIZER, WEIGHTS
from lectern.settings import Settings
from lectern.wiring import Lectern, open_lectern


def main() -> None:
    """Ask the only book of a home."""
    options = measuring.command_line()
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        lectern = runner.run(stack.enter_async_context(open_lectern(Settings(home=options.store), create=False)))

        def search(question: str) -> int:
            return len(runner.run(lectern.search(question, limit=measuring.LIMIT)).hits)

        made = measuring.searched(search, measuring.questions(options.queries), options.begun)
        made["pieces"] = made["pieces_read"] = runner.run(pieces(lectern))
        runner.run(stack.aclose())
    print(json.dumps(made))


async def pieces(lectern: Lectern) -> int:
    """How many word pieces were embedded, the trail that each window begins with included."""
    embedder = lectern.workshop.shelf.current.embedder
    chunks = [stored.chunk for stored in await lectern.chunks()]
    windows = [window for chunk in chunks for window in embedder.passages(chunk.trail, chunk.text)]
    return sum(measuring.pieces(windows, WEIGHTS / TOKENIZER))


if __name__ == "__main__":
    main()
