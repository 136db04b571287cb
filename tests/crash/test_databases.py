"""The PostgreSQL server of the tests lives as long as the session that started it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from lectern.store.database import database_url


async def test_the_server_outlives_the_start_of_another_pytest(tmp_path: Path, postgres_address: str) -> None:
    """Another session on the machine closes pytest's folder to other users; the server can still write a checkpoint
    and take new connections."""
    second_test = tmp_path / "test_other.py"
    second_test.write_text("def test_a_folder(tmp_path): assert tmp_path.is_dir()\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:asyncio"]
    command += ["--rootdir", str(tmp_path), str(second_test)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    engine = create_async_engine(database_url(postgres_address), poolclass=NullPool, isolation_level="AUTOCOMMIT")

    async with engine.connect() as connection:
        await connection.execute(text("CHECKPOINT"))
    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar() == 1
