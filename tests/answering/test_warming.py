"""A server is ready when its first question need not wait for anything to be loaded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.models.local import embedder as minilm
from lectern.models.local import pairs
from tests.answering.scripted import open_scripted
from tests.fakeai import fake_ai
from tests.served import LECTERN, serving


def _unload() -> None:
    pairs._reader.cache_clear()
    minilm._model.cache_clear()


def _loaded() -> tuple[int, int]:
    """Networks for pairs of texts, and embedders."""
    return pairs._reader.cache_info().currsize, minilm._model.cache_info().currsize


async def test_no_provider_is_called(tmp_path: Path) -> None:
    """With an endpoint, the judge and the embedder are loaded, and nobody is asked anything that costs."""
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai) as lectern:
            _unload()
            await lectern.app.warm()
            assert _loaded() == (1, 1)
            assert ai.received == []
            assert "ask_deps" in vars(lectern.app)


async def test_the_offline_model_has_its_answer_locator(tmp_path: Path) -> None:
    """The offline model needs the answerability check, so its network is loaded as well."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        _unload()
        await lectern.app.warm()
        assert _loaded() == (2, 1)


def test_a_server_that_cannot_answer_says_so_and_searches(sample_home: Path, tmp_path: Path) -> None:
    """What only answers need does not keep a server from starting, and is not left for the first reader to find."""
    env = {
        **os.environ,
        "LECTERN_HOME": str(sample_home),
        "LECTERN_INSTRUCTIONS": str(tmp_path / "nowhere.txt"),
        "LECTERN_LOG_FORMAT": "json",
    }
    log_file = tmp_path / "log"
    command = ["bash", "-c", f'exec "$0" "$@" 2>{log_file}', LECTERN, "serve", "--port", "0"]
    with serving(command, env=env) as address:
        response = httpx.post(f"{address}/search", json={"text": "What is a node?"}, timeout=120)
        assert response.status_code == 200
        assert "questions will fail: LECTERN_INSTRUCTIONS" in log_file.read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads of the engine are counted in /proc")
def test_a_search_is_no_work_for_many_threads(sample_home: Path) -> None:
    """A book is one segment; the engine's usual eight threads, woken for it, cost three times the search."""
    counting = """
import asyncio, os, pathlib
from lectern.app.open import open_lectern

async def main():
    async with open_lectern() as lectern:
        await lectern.search("What is a node?")
        names = [task.joinpath("comm").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
        print(sum(name.startswith("edge-search") for name in names))

asyncio.run(main())
"""
    python = str(Path(LECTERN).with_name("python"))
    env = {**os.environ, "LECTERN_HOME": str(sample_home)}
    result = subprocess.run([python, "-c", counting], capture_output=True, text=True, check=True, env=env)
    assert int(result.stdout) <= 1
