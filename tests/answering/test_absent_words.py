"""A search can say which rare words of a text the reader's scope lacks."""

from __future__ import annotations

from pathlib import Path

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.scope import Scope, SearchQuery
from tests.answering.scripted import write_book

TEXT = "Does the lidar of the Zorblax turtlebot know the zygote, and how often?"


async def test_absent_words_are_those_that_no_text_in_the_scope_has(tmp_path: Path) -> None:
    """Common words are none of them, a word in another form is known, and so is one outside the results."""
    folder = write_book(tmp_path / "book")
    (folder / "biology.md").write_text("# Cells\n\nTwo zygotes grow in the dish of the laboratory.\n", encoding="utf-8")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(folder, book="robots")

        async def absent(scope: Scope, *, asked: bool = True) -> tuple[str, ...]:
            return (await lectern.app.search(SearchQuery(text=TEXT, scope=scope, limit=1, find_absent=asked))).absent

        everywhere, nowhere = await absent(Scope(book_id="robots")), await absent(Scope(book_id="robots"), asked=False)
        modules = [module.module for module in (await lectern.outline("robots")).modules]
        inside = [await absent(Scope(book_id="robots", module=module)) for module in modules]

    assert "zorblax" in everywhere
    assert not {"zygote", "often", "know"} & set(everywhere)
    assert nowhere == ()
    assert any("zygote" in words for words in inside)
    assert not all("zygote" in words for words in inside)
