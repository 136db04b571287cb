"""What a reader may see, from a request down to a filter (RELIABILITY T1): whatever is missing, empty or unknown is an
error that names what exists, and never a broader search."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.domain.errors import BadInput, UnknownBook
from lectern.domain.scope import ChunkFilter, SearchQuery
from lectern.ingestion.ingest import IngestDeps, IngestRequest, ingest
from lectern.retrieval.search import HybridSearch
from lectern.schemas.scope import scope_from
from tests.ingest_parts import open_ingest_parts


@pytest.mark.parametrize("book_id", ["", " ", "\t\n", "\u00a0", "\u3000"])
def test_a_filter_without_a_book_cannot_be_made(book_id: str) -> None:
    """Blank in any script is no book."""
    with pytest.raises(ValueError, match="needs a book"):
        ChunkFilter(book_id=book_id)


@pytest.mark.parametrize("book_id", [None, 0, [], {}, True])
def test_a_filter_of_another_type_cannot_be_made(book_id: object) -> None:
    """What is no name at all is no book either, and never means every book."""
    with pytest.raises((ValueError, TypeError, AttributeError)):
        ChunkFilter(book_id=book_id)  # type: ignore[arg-type]  # wrong on purpose


def test_a_filter_cannot_leave_the_book_out() -> None:
    """There is no default that would span books."""
    with pytest.raises(TypeError):
        ChunkFilter()  # type: ignore[call-arg]  # wrong on purpose


def test_an_empty_set_of_levels_is_no_filter() -> None:
    """Engines read an empty any-of as no condition; it is refused before one is asked."""
    with pytest.raises(ValueError, match="levels"):
        ChunkFilter(book_id="book", levels=frozenset())


LESSON = (
    "---\nhardware_tier: {tier}\nproficiency_level: {level}\nlayer: {layer}\n---\n\n# {word}\n\nThe {word} robot.\n"
)


async def library(ingest_deps: IngestDeps, folder: Path, *books: str) -> HybridSearch:
    """Books of two lessons each, for tier 1 and tier 3; the first book's readers have tier 2 unless they say more."""
    for number, name in enumerate(books):
        home = folder / name
        (home / "mod").mkdir(parents=True)
        reader = "[reader]\nhardware_tier = 2\n" if number == 0 else ""
        (home / "lectern.toml").write_text(f'book_id = "{name}"\n{reader}', encoding="utf-8")
        for tier, level, layer in ((1, "A2", "L1"), (3, "B2", "L3")):
            text = LESSON.format(tier=tier, level=level, layer=layer, word=f"{name}-tier-{tier}")
            (home / "mod" / f"0{tier}-x.md").write_text(text, encoding="utf-8")
        async for _ in ingest(IngestRequest(folder=home), ingest_deps):
            pass
    return HybridSearch(ingest_deps.collections, ingest_deps.ledger, "two")


async def tiers(search: HybridSearch, **scope: object) -> list[int]:
    """The tiers of what is found, and that the response says what was applied."""
    findings = await search(SearchQuery(text="the robot", scope=scope_from(scope), limit=20))
    assert all(hit.chunk.hardware_tier <= findings.where.max_tier for hit in findings.hits)
    assert {hit.chunk.book_id for hit in findings.hits} <= {findings.where.book_id}
    return sorted(hit.chunk.hardware_tier for hit in findings.hits)


async def test_the_manifests_reader_is_assumed_where_none_is_named(tmp_path: Path) -> None:
    """`[reader] hardware_tier` narrows a search that names no tier; one that does is taken at its word."""
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        search = await library(ingest_deps, tmp_path, "one", "two")

        assert await tiers(search, book_id="one") == [1]
        assert await tiers(search, book_id="one", hardware_tier_filter=4) == [1, 3]
        assert await tiers(search, book_id="one", hardware_tier_filter=1) == [1]
        assert await tiers(search, book_id="two") == [1, 3]  # no [reader]: every tier


async def test_the_default_book_is_searched_where_none_is_named(tmp_path: Path) -> None:
    """The configured book among several; the only one where there is but one; else an error that lists them."""
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        search = await library(ingest_deps, tmp_path, "one", "two")
        findings = await search(SearchQuery(text="the robot"))
        assert (findings.where.book_id, {hit.chunk.book_id for hit in findings.hits}) == ("two", {"two"})

        with pytest.raises(BadInput, match="one, two"):
            await HybridSearch(ingest_deps.collections, ingest_deps.ledger)(SearchQuery(text="the robot"))
        with pytest.raises(UnknownBook, match="one, two"):
            await HybridSearch(ingest_deps.collections, ingest_deps.ledger, "three")(SearchQuery(text="the robot"))
    async with open_ingest_parts(tmp_path / "single") as ingest_deps:
        await library(ingest_deps, tmp_path / "again", "one")
        findings = await HybridSearch(ingest_deps.collections, ingest_deps.ledger, "two")(SearchQuery(text="the robot"))
        assert findings.where.book_id == "one"


@pytest.mark.parametrize(
    ("scope", "field", "names"),
    [
        ({"book_id": "ONE"}, "book_id", "one, two"),
        ({"book_id": "*"}, "book_id", "one, two"),
        ({"book_id": ""}, "book_id", "one, two"),
        ({"book_id": "one "}, "book_id", "one, two"),
        ({"module_filter": "nomod"}, "module_filter", "mod"),
        ({"module_filter": ""}, "module_filter", "mod"),
        ({"layer_filter": "L9"}, "layer_filter", "L1, L2, L3, L4"),
        ({"layer_filter": "l1"}, "layer_filter", "L1, L2, L3, L4"),
        ({"layer_filter": ""}, "layer_filter", "L1, L2, L3, L4"),
        ({"proficiency_levels": ("A2", "Z9")}, "proficiency_levels", "A1, A2, B1, B2, C1, C2"),
        ({"proficiency_levels": ("",)}, "proficiency_levels", "A1, A2, B1, B2, C1, C2"),
        ({"proficiency_levels": ()}, "proficiency_levels", "at least one"),
        ({"hardware_tier_filter": 0}, "hardware_tier_filter", "1 to 4"),
        ({"hardware_tier_filter": 5}, "hardware_tier_filter", "1 to 4"),
        ({"chapter_min": 3, "chapter_max": 2}, "chapter_min", "above"),
        ({"chapter_min": -1}, "chapter_min", "0 to"),
        ({"chapter_max": 2**40}, "chapter_max", "0 to"),
        ({"lesson_filter": -1}, "lesson_filter", "0 to"),
    ],
)
async def test_an_unknown_value_is_an_error_that_names_what_exists(
    tmp_path: Path, scope: dict[str, object], field: str, names: str
) -> None:
    """Through a real search: never an empty answer, and never a broader one."""
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        search = await library(ingest_deps, tmp_path, "one", "two")
        with pytest.raises(BadInput) as raised:
            await tiers(search, **{"book_id": "one", **scope})

    assert raised.value.field == field
    assert names in str(raised.value)


async def test_a_module_is_found_under_its_other_name(tmp_path: Path) -> None:
    """The filter that was applied has the module's own name; a real module is never hidden by an alias."""
    for name in ("gazebo", "ros2"):
        (tmp_path / "robots" / name).mkdir(parents=True)
        (tmp_path / "robots" / name / "a.md").write_text(f"# {name}\n\nThe robot of {name}.\n", encoding="utf-8")
    manifest = '[module_aliases]\nsimulation = "gazebo"\nros2 = "gazebo"\n'
    (tmp_path / "robots" / "lectern.toml").write_text(manifest, encoding="utf-8")
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        async for _ in ingest(IngestRequest(folder=tmp_path / "robots"), ingest_deps):
            pass
        search = HybridSearch(ingest_deps.collections, ingest_deps.ledger)
        for name, module in (("simulation", "gazebo"), ("gazebo", "gazebo"), ("ros2", "ros2")):
            findings = await search(SearchQuery(text="the robot", scope=scope_from({"module_filter": name})))

            assert findings.where.module == module
            assert {hit.chunk.module for hit in findings.hits} == {module}


async def test_a_known_value_without_chunks_is_an_empty_answer(tmp_path: Path) -> None:
    """Levels, layers and chapters that a book could have are no mistake."""
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        search = await library(ingest_deps, tmp_path, "one", "two")

        assert await tiers(search, book_id="two", layer_filter="L4") == []
        assert await tiers(search, book_id="two", layer_filter="L3") == [3]
        assert await tiers(search, book_id="two", proficiency_levels=("C2",)) == []
        assert await tiers(search, book_id="two", proficiency_levels=("C2", "A2")) == [1]
        assert await tiers(search, book_id="two", chapter_min=900) == []
        assert await tiers(search, book_id="two", parent_doc_id="00000000-0000-5000-8000-000000000000") == []
