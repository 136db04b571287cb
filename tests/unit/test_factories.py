"""What is built from the settings, without asking a provider."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.app.factories import PartFactory
from lectern.app.home import Home
from lectern.app.settings import Settings


@pytest.mark.parametrize(("model", "dimensions"), [("a", 16), ("a/b", 8)])
async def test_dimensions_are_those_of_the_whole_name(tmp_path: Path, model: str, dimensions: int) -> None:
    """A model whose name begins another's has its own dimensions, whichever book comes first."""
    settings = Settings(
        home=tmp_path,
        embedder="openai",
        openai_base_url="http://127.0.0.1:9/v1",
        openai_embedding_model=model,
    )
    async with AsyncExitStack() as stack:
        factory = PartFactory(settings, cast("Home", None), cast("AsyncEngine", None), stack)
        embedder = await factory.embedder(["local/a/4", "openai/a/b/8", "openai/a/16"])

        assert embedder.dimensions == dimensions


def test_who_asks_no_model_loads_no_package_of_one() -> None:
    """A command that lists, searches or ingests starts without the packages through which a language model is asked:
    they take longer to load than all the rest."""
    program = "import sys, lectern.app.open, lectern.cli.main; print({'agents', 'openai'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert result.stdout == "set()\n"
