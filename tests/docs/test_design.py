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
TERMS = sorted({term for row in ROWS for cell in row for term in re.findall("`([^`]+)`", cell)})
FIELDS = (ROOT / "scripts" / "design_fields.txt").read_text(encoding="utf-8")
ENTITIES = """
AgentConfig AgentConfiguration AgentResponse ChatRequest ChatResponse ChunkMetadata Citation ConfidenceMetrics
Conversation ConversationState ConversationThread DocumentChunk DocumentMetadata EmbeddedChunk IngestionJob
IngestionRecord IngestionState Message QdrantPayload Query RetrievalContext RetrievalResult RetrievalTool SearchQuery
SearchResponse SearchResult Source ToolCall ToolResponse
"""  # of the five documents


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


@pytest.mark.parametrize("name", [term for term in TERMS if term.startswith("lectern.")])
def test_every_name_is_in_the_code(name: str) -> None:
    """A class or function that is renamed is renamed here too."""
    assert exists_in_code(name)


def test_every_endpoint_is_served() -> None:
    """Method and path are those of the API's own description."""
    paths = unguarded_app().openapi()["paths"]
    served = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    named = {term for term in TERMS if re.match("(GET|POST|PATCH|DELETE) /", term)}

    assert named
    assert named <= served


def test_every_setting_is_read() -> None:
    """A variable on the page is one of the settings."""
    named = {match[1] for term in TERMS if (match := re.fullmatch("([A-Z]+(?:_[A-Z]+)+)(=.*)?", term))}

    assert named
    assert named <= variables().keys()


def test_every_table_is_there() -> None:
    """Tables are named after the word `table`."""
    tables = {
        name
        for row in ROWS
        for part in re.findall("tables? ((?:`[a-z_]+`(?:, )?)+)", row[1])
        for name in re.findall("`([a-z_]+)`", part)
    }

    assert tables
    assert tables <= set(metadata.tables)


def test_every_test_is_there() -> None:
    """A file, or a function in one: what the page says is checked."""
    named = [term.partition("::") for term in TERMS if term.startswith("tests/")]
    missing = [
        f"{file}::{function}"
        for file, _, function in named
        if not (ROOT / file).is_file() or f"def {function}" not in (ROOT / file).read_text(encoding="utf-8")
    ]

    assert named
    assert missing == []


def test_every_rule_and_example_has_a_test() -> None:
    """The last cell of each of their rows names one."""
    rows = [row for row in ROWS if re.fullmatch("[1-5](, [1-5])*", row[0]) and len(row) == 4]

    assert len(rows) > 60
    assert [row for row in rows if "`tests/" not in row[3]] == []


def test_every_entity_of_the_documents_has_a_row() -> None:
    """A reader of the documents finds each of their entities in the first column, and its fields in the last table."""
    listed = " ".join(row[0] for row in ROWS)
    with_fields = {line.split()[1] for line in FIELDS.splitlines() if line and not line.startswith("#")}

    assert [name for name in ENTITIES.split() if not re.search(rf"\b{name}\b", listed)] == []
    assert with_fields == set(ENTITIES.split())


def test_every_decision_has_a_reason() -> None:
    """Its row has three cells, and the last one says more than a name."""
    decisions = PAGE.partition("## Where Lectern decides otherwise")[2].partition("\n## ")[0]
    rows = [line for line in decisions.splitlines() if line.startswith("| ")][1:]  # without the head

    assert len(rows) > 30
    assert [row for row in rows if row.count(" | ") != 2 or len(row.rsplit(" | ", 1)[1].split()) < 5] == []
