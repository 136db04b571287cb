"""The page that leads from the design documents to the code: every name on it is there."""

from __future__ import annotations

import importlib
import re

import pytest

from lectern.api.app import unguarded_app
from lectern.app.settings import variables
from lectern.store.tables import metadata
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
ENTITIES = """
AgentConfig AgentConfiguration AgentResponse ChatRequest ChatResponse ChunkMetadata Citation ConfidenceMetrics
Conversation ConversationState ConversationThread DocumentChunk DocumentMetadata EmbeddedChunk IngestionJob
IngestionRecord IngestionState Message QdrantPayload Query RetrievalContext RetrievalResult RetrievalTool SearchQuery
SearchResponse SearchResult Source ToolCall ToolResponse
"""  # of the five documents


def terms(column: int) -> list[str]:
    """The names in code marks of a column."""
    return sorted({term for row in ROWS for term in re.findall("`([^`]+)`", row[column] if column < len(row) else "")})


def exists_in_code(name: str) -> bool:
    """Whether a dotted name leads to something that can be imported."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("name", [term for column in (1, 2) for term in terms(column) if term.startswith("lectern.")])
def test_every_name_is_in_the_code(name: str) -> None:
    """A class or function that is renamed is renamed here too."""
    assert exists_in_code(name)


def test_every_endpoint_is_served() -> None:
    """Method and path are those of the API's own description."""
    paths = unguarded_app().openapi()["paths"]
    served = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    named = {term for column in (1, 2) for term in terms(column) if re.match("(GET|POST|PATCH|DELETE) /", term)}

    assert named
    assert named <= served


def test_every_setting_is_read() -> None:
    """A variable on the page is one of the settings."""
    named = {term for column in (1, 2) for term in terms(column) if re.fullmatch("[A-Z]+(_[A-Z]+)+", term)}

    assert named
    assert named <= variables().keys()


def test_every_table_and_test_is_there() -> None:
    """Tables are named after the word `table`, tests in the last column."""
    tables = {
        name
        for row in ROWS
        for part in re.findall("tables? ((?:`[a-z_]+`(?:, )?)+)", row[1])
        for name in re.findall("`([a-z_]+)`", part)
    }
    files = [term for term in terms(2) if term.startswith("tests/")]

    assert tables
    assert tables <= set(metadata.tables)
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_entity_of_the_documents_has_a_row() -> None:
    """A reader of the documents finds each of their entities in the first column."""
    listed = " ".join(row[0] for row in ROWS)

    assert [name for name in ENTITIES.split() if not re.search(rf"\b{name}\b", listed)] == []
