"""What the settings say about providers, and what is checked of it before anybody asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lectern import execute_retrieval_tool, retrieve_documentation
from lectern.answering.instructions import NOT_COVERED, STYLE, answering_instructions
from lectern.app.factories import check_settings, openai_model, parts_description
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.confidence.policies import Relevance
from lectern.domain.errors import ConfigError
from tests.answering.scripted import KEY, open_scripted, write_book
from tests.fakeai import fake_ai
from tests.served import lectern as command


def settings(**values: Any) -> Settings:
    """Settings, named as their variables."""
    return Settings(_env_file=None, **values)


@pytest.mark.parametrize("name", ["gpt-3.5-turbo", "gpt-4-turbo", "gpt-4o-mini", "o4-mini", "ft:gpt-4o:acme::x1"])
def test_the_names_of_openais_models(name: str) -> None:
    """Those of the documents, and fine-tuned ones."""
    assert openai_model(settings(OPENAI_MODEL=name)) == name


@pytest.mark.parametrize("name", ["llama3.1:8b", "text-embedding-3-small", "gpt4"])
def test_a_model_that_openai_does_not_have(name: str) -> None:
    """It is refused at OpenAI's own endpoint only."""
    with pytest.raises(ConfigError, match="OPENAI_MODEL"):
        openai_model(settings(OPENAI_MODEL=name))
    assert openai_model(settings(OPENAI_MODEL=name, OPENAI_BASE_URL="http://127.0.0.1:1/v1")) == name


@pytest.mark.parametrize("name", ["", "two words", "-x", "a\nb"])
def test_what_is_no_name_of_a_model(name: str) -> None:
    """No endpoint has it."""
    with pytest.raises(ValidationError, match="OPENAI_MODEL"):
        settings(OPENAI_MODEL=name, OPENAI_BASE_URL="http://127.0.0.1:1/v1")


def test_a_malformed_key_is_noticed_before_a_question() -> None:
    """For answers and for embeddings; offline nobody needs one."""
    for values in ({"OPENAI_API_KEY": "sk-short"}, {"embedder": "openai"}, {"OPENAI_API_KEY": "x" * 50}):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            check_settings(settings(**values))
    check_settings(settings())
    check_settings(settings(OPENAI_API_KEY=KEY))
    check_settings(settings(OPENAI_API_KEY="any", OPENAI_BASE_URL="http://127.0.0.1:1/v1"))


def test_a_server_with_a_malformed_key_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It exits with a message that names the variable, and not the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-tooshortcanary")
    result = command("serve", "--port", "0", home=tmp_path / "home", check=False)

    assert result.returncode == 2
    assert "OPENAI_API_KEY" in result.stderr
    assert "canary" not in result.stdout + result.stderr


def test_a_server_says_what_it_runs_on_without_secrets() -> None:
    """Model, embedder, index and database in one line."""
    local = parts_description(settings(), "local/all-MiniLM-L6-v2")
    remote = parts_description(
        settings(
            OPENAI_API_KEY=KEY,
            QDRANT_URL="http://qdrant.example:6333",
            DATABASE_URL="postgresql://reader:hunter2@db.example:5432/lectern",
        ),
        "openai/text-embedding-3-small",
    )

    assert "embedder: local/all-MiniLM-L6-v2 · index: embedded · database: SQLite" in local
    assert remote == (
        "Model: gpt-4o-mini at api.openai.com · embedder: openai/text-embedding-3-small · "
        "index: Qdrant at qdrant.example:6333 · database: PostgreSQL lectern at db.example"
    )


def test_a_style_replaces_the_middle_and_no_rule() -> None:
    """Wording and form are the operator's; passages, citations and refusals stay as they are."""
    text = answering_instructions("- Answer like a pirate.", "Mention the forum.")

    assert STYLE not in text
    first, pirate, last = text.partition("- Answer like a pirate.\n")
    assert pirate
    assert "State only what the passages state" in first
    assert NOT_COVERED in last
    assert "Cite only numbers" in last
    assert text.endswith("Mention the forum.\n")
    assert STYLE in answering_instructions()


async def test_the_style_comes_from_a_file(tmp_path: Path) -> None:
    """The model is sent its text."""
    file = tmp_path / "style.md"
    file.write_text("- Answer like a pirate.", encoding="utf-8")
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai, style=file) as lectern:
            assert "- Answer like a pirate.\n" in lectern.app.ask_deps.answerer.instructions


async def test_the_score_of_a_relevant_passage_can_be_set(tmp_path: Path) -> None:
    """The policy `relevance` measures with it."""
    chosen = settings(home=tmp_path / "home", confidence="relevance", min_relevance_score=0.45)
    async with open_lectern(chosen) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        policy = await lectern.app.ask_deps.policy("robots")

    assert isinstance(policy, Relevance)
    assert policy.relevant == 0.45


async def test_the_retrieval_tool_can_be_called(tmp_path: Path) -> None:
    """It answers with the second document's JSON, and so it does when something is wrong."""
    async with open_lectern(settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        answer = json.loads(await retrieve_documentation(lectern, "What is a node?", top_k=2))
        refusals = [
            json.loads(await retrieve_documentation(lectern, "What is a node?", top_k=21)),
            json.loads(await retrieve_documentation(lectern, "   ")),
            json.loads(await retrieve_documentation(lectern, "What is a node?", book="unknown")),
        ]

    assert answer["query"] == "What is a node?"
    assert answer["total_results"] == len(answer["results"]) == 2
    assert [result["rank"] for result in answer["results"]] == [1, 2]
    assert "process that computes" in answer["results"][0]["chunk_text"]
    assert all(refusal.keys() == {"error", "query"} for refusal in refusals)


def test_the_retrieval_tool_needs_no_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the second document has it: a plain function."""
    monkeypatch.setenv("LECTERN_HOME", str(tmp_path / "home"))
    write_book(tmp_path / "robots")
    command("ingest", str(tmp_path / "robots"), home=tmp_path / "home")

    assert json.loads(execute_retrieval_tool("What is a node?", top_k=1))["total_results"] == 1
    assert "error" in json.loads(execute_retrieval_tool("What is a node?", similarity_threshold=1.5))
