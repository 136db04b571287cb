"""What a reader sees of a book before the first question, and what a refusal suggests."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from lectern.app import book_details
from lectern.app.book_details import MAX_DESCRIPTION, description_of
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.errors import ProviderError
from lectern.domain.replies import Answer, Refusal
from lectern.domain.scope import Scope
from lectern.text.strings import strings_of
from tests.answering.scripted import open_scripted
from tests.fakeai import fake_ai

SAMPLE = "physical-ai-robotics"
OUTSIDE = ("How long does sourdough bread rise?", "Who won the world cup in 1974?", "hello")
GERMAN = """# Knoten

Ein Knoten ist ein Teilnehmer im Graphen, der einen eigenen Namen hat. Wenn die Batterie leer ist, fährt der Roboter
zurück in die Station, und das dauert so lange, bis man ihn wieder startet. Mehrere Knoten tauschen Nachrichten aus.

## Was ist ein Kanal?

Ein Kanal hat einen Namen und einen Typ. Jeder Knoten, der einen Kanal abonniert, bekommt alle Nachrichten, die dort
veröffentlicht werden, und er weiß nicht, wer sie sendet. Der Kanal bleibt bestehen, auch wenn niemand zuhört.
"""


def german_book(folder: Path, manifest: str = "") -> Path:
    """A book of one lesson."""
    folder.mkdir()
    (folder / "01-knoten.md").write_text(GERMAN, encoding="utf-8")
    if manifest:
        (folder / "lectern.toml").write_text(manifest, encoding="utf-8")
    return folder


async def test_every_first_question_of_the_sample_book_is_answered(sample_home: Path, tmp_path: Path) -> None:
    """Four to six, from several modules, by the offline model and with its own sources."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        details = await lectern.book_details()
        replies = [await lectern.ask(question) for question in details.suggestions]

    assert 4 <= len(details.suggestions) <= 6
    assert all(isinstance(reply, Answer) for reply in replies)
    modules = {source.hit.chunk.module for reply in replies for source in reply.citations[:1]}
    assert len(modules) > 2


async def test_the_details_of_the_sample_book_are_what_its_lessons_have(sample_home: Path, tmp_path: Path) -> None:
    """Filters are the values in the index; the description is its first paragraph without Markdown."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        details, outline = await lectern.book_details(SAMPLE), await lectern.outline(SAMPLE)
        chunks = [stored.chunk for stored in await lectern.app.library.chunks(SAMPLE)]

    assert set(details.filters.tiers) == {chunk.hardware_tier for chunk in chunks}
    assert set(details.filters.levels) == {chunk.proficiency_level for chunk in chunks}
    assert set(details.filters.layers) == {chunk.layer for chunk in chunks}
    assert [choice.module for choice in details.filters.modules] == [module.module for module in outline.modules]
    assert {(choice.module, choice.chapter) for choice in details.filters.chapters} == {
        (chunk.module, chunk.chapter) for chunk in chunks if chunk.chapter
    }
    assert details.lessons == len({chunk.parent_doc_id for chunk in chunks})
    assert details.language == "en"
    assert details.description.startswith("A robot is a distributed system")
    assert 0 < len(details.description) <= MAX_DESCRIPTION


async def test_a_refusal_suggests_questions_that_are_answered(sample_home: Path, tmp_path: Path) -> None:
    """Within the reader's filters; an answer suggests nothing."""
    shutil.copytree(sample_home, tmp_path / "home")
    scope = Scope(book_id=SAMPLE, module="gazebo")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.app.warm()
        await lectern.book_details()
        refusals = [await lectern.ask(question, scope=scope) for question in OUTSIDE]
        suggested = {text for refusal in refusals if isinstance(refusal, Refusal) for text in refusal.suggestions}
        replies = [await lectern.ask(text, scope=scope) for text in suggested]

    assert all(isinstance(refusal, Refusal) for refusal in refusals)
    assert suggested
    assert all(isinstance(reply, Answer) for reply in replies)


async def test_a_busy_machine_suggests_the_first_questions(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the time to try anything a refusal has three suggestions: those of the book's first questions."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.app.warm()
        details = await lectern.book_details()
        monkeypatch.setattr("lectern.answering.ask.SUGGESTING_SECONDS", 0.01)
        refusals = [await lectern.ask(question) for question in OUTSIDE]

    for refusal in refusals:
        assert isinstance(refusal, Refusal)
        assert len(refusal.suggestions) == 3
        assert refusal.suggestions[-1] in details.suggestions


async def test_a_refusal_is_a_reply_where_its_suggestions_fail(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suggestions are an extra: if the provider that they need fails, the refusal comes without them."""

    async def down(*_: object) -> tuple[str, ...]:
        raise ProviderError("test", "is down")

    shutil.copytree(sample_home, tmp_path / "home")
    monkeypatch.setattr("lectern.answering.ask.heading_questions", lambda *_: ())
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        monkeypatch.setattr(book_details.DetailedBooks, "first_questions", down)
        refusal = await lectern.ask(OUTSIDE[0])

    assert isinstance(refusal, Refusal)
    assert refusal.suggestions == ()


async def test_a_german_book_is_answered_in_german(tmp_path: Path) -> None:
    """Nothing is declared: the text tells the language, for the refusal and for what is suggested."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(german_book(tmp_path / "buch"), book="buch")
        details = await lectern.book_details("buch")
        refusal = await lectern.ask("How long does sourdough bread rise?")
        greeting = await lectern.ask("hallo")
        outline = await lectern.ask("How many lessons does the book have?")

    assert details.language == "de"
    assert details.filters.tiers == details.filters.levels == details.filters.layers == ()
    assert details.filters.modules == details.filters.chapters == ()
    assert "Was ist ein Kanal?" in details.suggestions
    assert isinstance(refusal, Refusal)
    assert refusal.text == "Das habe ich im Buch nicht gefunden." == strings_of("de")("refusal.default")
    assert isinstance(greeting, Refusal)
    assert greeting.text.startswith("Hallo! Ich beantworte Fragen zu „Buch“ aus dem Buch selbst.")
    assert greeting.suggestions == details.suggestions[:3]
    assert outline.text.startswith("Das Buch hat 1 Lektion.")


async def test_the_operators_own_sentence_is_kept(tmp_path: Path) -> None:
    """Whatever the language of the book; so is an English sentence that the operator set."""
    own = Settings(home=tmp_path / "home", refusal="Nope.", disclaimer="Careful.")
    async with open_lectern(own) as lectern:
        await lectern.ingest(german_book(tmp_path / "buch"), book="buch")
        refusal = await lectern.ask("hello")
        rules = lectern.app.ask_deps.rules

    assert refusal.text == "Nope."
    assert rules.disclaimer == "Careful."


async def test_a_declared_language_is_taken(tmp_path: Path) -> None:
    """`language` and `description` of the manifest go before what the text shows."""
    manifest = 'language = "fr"\ndescription = "Un livre **court**."\n'
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(german_book(tmp_path / "buch", manifest), book="buch")
        details = await lectern.book_details("buch")
        refusal = await lectern.ask("How long does sourdough bread rise?")

    assert (details.language, details.description) == ("fr", "Un livre court.")
    assert refusal.text == strings_of("fr")("refusal.default") != strings_of("en")("refusal.default")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("mkdocs.yml", "site_name: Knoten\nsite_description: Ein Buch über Knoten.\ndocs_dir: .\n"),
        ("book.toml", '[book]\ntitle = "Knoten"\ndescription = "Ein Buch über Knoten."\nsrc = "."\n'),
        ("docusaurus.config.js", "module.exports = {\n  title: 'Knoten',\n  tagline: 'Ein Buch über Knoten.',\n};\n"),
    ],
)
async def test_the_sites_configuration_describes_the_book(tmp_path: Path, file: str, text: str) -> None:
    """MkDocs, mdBook and Docusaurus each have a place for it; nothing is executed."""
    folder = german_book(tmp_path / "buch")
    (folder / file).write_text(text, encoding="utf-8")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(folder, book="buch")
        details = await lectern.book_details("buch")

    assert details.description == "Ein Buch über Knoten."


async def test_details_are_read_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers at the same time share the work; after an edit it is done again."""
    reads = []
    real = book_details.filter_choices
    monkeypatch.setattr(book_details, "filter_choices", lambda *args: reads.append(1) or real(*args))
    folder = german_book(tmp_path / "buch")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(folder, book="buch")
        first = await asyncio.gather(*(lectern.book_details("buch") for _ in range(5)))
        assert len(reads) == 1
        (folder / "01-knoten.md").write_text(GERMAN.replace("Kanal", "Strang"), encoding="utf-8")
        await lectern.ingest(folder, book="buch")
        second = await lectern.book_details("buch")

    assert len(reads) == 2
    assert "Was ist ein Kanal?" in first[0].suggestions
    assert "Was ist ein Kanal?" not in second.suggestions


async def test_no_language_model_is_asked_for_suggestions(tmp_path: Path) -> None:
    """With an endpoint the evidence alone decides what is suggested."""
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai) as lectern:
            await lectern.ingest(german_book(tmp_path / "buch"), book="buch")
            details = await lectern.book_details("buch")
            refusal = await lectern.ask("hello", book="buch")

    assert ai.received == []
    assert details.suggestions
    assert isinstance(refusal, Refusal)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("", ""),
        ("One [link](https://x.org) and `code`.", "One link and code."),
        ("Short. Word" + " word" * 100, "Short."),
        ("**Bold** " + "word " * 100, None),
        ("x" * 1000, None),
    ],
)
def test_a_description_is_short_and_plain(text: str, description: str | None) -> None:
    """Whole sentences if they fit, else a cut at a word; no Markdown is left."""
    made = description_of(text)

    assert len(made) <= MAX_DESCRIPTION
    assert not set("*`[]") & set(made)
    assert description in (None, made)
