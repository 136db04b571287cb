"""Counts the files of the package that one command and one request enter: how far a reader of the code has to walk.

    python scripts/trace_files.py [--list]

Two walks on the sample book, with the offline model: `lectern ingest` after one file was edited, and one streamed chat
(`POST /chat/stream`). A file counts when a function of it runs; importing it does not count.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = str(ROOT / "src" / "lectern") + os.sep
QUESTION = "What is a topic?"


@contextmanager
def entered_files() -> Iterator[set[str]]:
    """The files whose functions run inside the block, in every thread."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            files.add(code.co_filename.removeprefix(PACKAGE))

    threading.setprofile_all_threads(note) if hasattr(threading, "setprofile_all_threads") else threading.setprofile(
        note
    )
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def command(*arguments: str) -> None:
    """A command of the terminal, in this process."""
    from lectern.cli.main import app

    app(list(arguments), standalone_mode=False)


def ingest_one_edit(book: Path) -> set[str]:
    """What `lectern ingest` enters when one file of an indexed book was edited."""
    command("ingest", str(book))
    lesson = next(path for path in sorted(book.rglob("*.md")) if path.stat().st_size > 0)
    lesson.write_text(lesson.read_text(encoding="utf-8") + "\nOne more sentence about robots.\n", encoding="utf-8")
    with entered_files() as files:
        command("ingest", str(book))
    return files


async def chat_once() -> set[str]:
    """What one streamed chat enters in a server that has answered before."""
    import httpx

    from lectern.api.app import create_app
    from lectern.app.open import open_lectern

    async with open_lectern() as lectern:
        transport = httpx.ASGITransport(app=create_app(lectern))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as client:
            (await client.post("/chat/stream", json={"message": QUESTION})).raise_for_status()
            with entered_files() as files:
                (await client.post("/chat/stream", json={"message": QUESTION})).raise_for_status()
    return files


def main() -> None:
    """Print both counts, and with --list the files."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LECTERN_HOME"] = str(Path(folder) / "home")
        book = Path(shutil.copytree(ROOT / "examples" / "physical-ai-robotics", Path(folder) / "book"))
        walks = {
            "lectern ingest, one edited file": ingest_one_edit(book),
            "POST /chat/stream": asyncio.run(chat_once()),
        }
    for name, files in walks.items():
        print(f"{name}: {len(files)} files")
        if "--list" in sys.argv:
            print("\n".join(f"  {file}" for file in sorted(files)))


if __name__ == "__main__":
    main()
