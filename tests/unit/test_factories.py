"""What is built from the settings, without asking a provider."""

from __future__ import annotations

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
