"""The backup of docs/scaling.md: a dump of PostgreSQL, the books and the home bring everything back, whatever became of
Qdrant."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lectern.app.lectern import Lectern
from lectern.app.open import open_application
from lectern.app.settings import Settings
from tests.conftest import ROOT, SAMPLE_BOOK
from tests.ports import free_port
from tests.qdrant_server import QdrantServer
from tests.scaling.topology import Program
from tests.served import LECTERN

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
QUESTIONS = ("What is a node?", "What is a URDF file?")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One server's environment: PostgreSQL, Qdrant and a home."""

    folder: Path
    settings: dict[str, str]
    programs: Path  # of PostgreSQL

    def run(self, command: str, typed: str = "") -> str:
        """Run a line of shell as an operator would; gives what it printed."""
        path = os.pathsep.join([str(Path(LECTERN).parent), str(self.programs), os.environ["PATH"]])
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env={**os.environ, **self.settings, "PATH": path},
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        return result.stdout

    async def state(self) -> dict[str, object]:
        """What must come back: every chunk, but for the times of its stamp; every conversation; every key."""
        async with open_application(Settings(**self.settings), create=False) as app:  # type: ignore[arg-type]  # as variables
            own = Lectern(app).threads
            threads = [head.thread_id for head in (await own.list()).heads]
            return {
                "chunks": [stored.chunk for stored in await app.library.chunks(SAMPLE_BOOK.name)],
                "threads": [await own.turns(thread) for thread in threads],
                "keys": await app.keys.list_keys(),
            }


@contextmanager
def debian_postgres() -> Iterator[tuple[str, Path]]:
    """The address of a PostgreSQL whose own client programs are there too, and the folder of these programs."""
    if not PROGRAMS:
        pytest.skip("no PostgreSQL with its client programs on this machine: apt-get install postgresql")
    programs, port = PROGRAMS[-1], free_port()
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="lectern-postgres-", dir=root) as name, ExitStack() as stack:
        folder, prefix = Path(name), list[str]()
        if os.getuid() == 0:  # it refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        data = folder / "data"
        making = [*prefix, str(programs / "initdb"), "-D", str(data), "-U", "lectern", "--auth=trust", "-E", "UTF8"]
        subprocess.run(making, check=True, capture_output=True)
        command = [*prefix, str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
        server = Program([*command, "-h", "127.0.0.1"], folder / "log", port)
        stack.callback(server.stop)
        server.start()
        yield f"postgresql://lectern@127.0.0.1:{port}/lectern", programs


def documented(heading: str) -> list[str]:
    """The lines of shell below a heading of docs/scaling.md."""
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    section = page.split(f"\n### {heading}\n", 1)[1]
    block = re.split(r"\n##+ ", section, maxsplit=1)[0].split("```sh\n", 1)[1].split("```", 1)[0]
    return [line.partition("  #")[0].strip() for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("index", ["lost", "newer"])
async def test_a_backup_brings_everything_back(tmp_path: Path, index: str) -> None:
    """After the commands of the page, chunks, conversations and keys are those of the moment of the backup: with an
    empty Qdrant, and with one that has gone on since."""
    with debian_postgres() as (address, programs), ExitStack() as stack:
        node = QdrantServer(tmp_path / "qdrant")
        stack.callback(node.kill)
        node.start()
        settings = {"DATABASE_URL": address, "QDRANT_URL": node.url, "LECTERN_HOME": str(tmp_path / "home")}
        here = Installation(folder=tmp_path, settings=settings, programs=programs)
        shutil.copytree(SAMPLE_BOOK, tmp_path / "books" / SAMPLE_BOOK.name)
        here.run('createdb --maintenance-db="${DATABASE_URL%/*}/postgres" lectern')
        here.run(f"lectern ingest books/{SAMPLE_BOOK.name}")
        here.run("lectern chat", typed="\n".join(QUESTIONS) + "\n")
        here.run("lectern keys create --name reader")
        before = await here.state()

        for line in documented("Backup"):
            here.run(line)
        lesson = next((tmp_path / "books").rglob("01-nodes-and-topics.md"))
        lesson.write_text("# Another lesson\n\nNothing of the old one is left in here.\n", encoding="utf-8")
        here.run(f"lectern ingest books/{SAMPLE_BOOK.name}")

        for folder in ("books", "home"):
            shutil.rmtree(tmp_path / folder)
        if index == "lost":
            node.kill()
            shutil.rmtree(tmp_path / "qdrant")
            node.start()
        for line in documented("Restore"):
            here.run(line)

        assert await here.state() == before
        here.run("lectern doctor")  # fails if anything disagrees
