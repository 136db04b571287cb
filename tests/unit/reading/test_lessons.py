"""Lessons read whole: identity, the chain, the design's own proof, and what makes a lesson change."""

from __future__ import annotations

import os
import pickle
import uuid
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from lectern.domain.chunks import CHUNK_SPACE, Chunk, content_hash
from lectern.index.lexical import passage_terms, query_terms
from lectern.reading import chunking as rules_module
from lectern.reading import lessons as lessons_module
from lectern.reading import survey as survey_module
from lectern.reading.chunking import ReadingRules
from lectern.reading.lessons import FileChanged, read_lesson
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, chunks, lessons_by_file, surveyed, words, write


def lesson_of(sections: int, stem: str) -> str:
    """A lesson with this many sections, each a chunk of its own."""
    return "\n\n".join(f"## {stem} {number}\n\n{words(100, f'{stem}{number}x')}" for number in range(sections))


def read_book(root: Path) -> dict[str, tuple[Chunk, ...]]:
    """All chunks of a folder by file."""
    book_survey = survey(root, book_id="physical-ai-robotics")
    return {
        lesson.source_file: read_lesson(root, lesson, book_survey.manifest).chunks for lesson in book_survey.lessons
    }


def test_the_designs_three_lesson_proof(tmp_path: Path) -> None:
    """Lessons of 5, 3 and 1 chunks: parents shared by a lesson and no other, chains whole, no cycles."""
    counts = {"ros2/1-c/01-a.md": 5, "ros2/1-c/02-b.md": 3, "vla/1-c/01-c.md": 1}
    book = read_book(write(tmp_path, {file: lesson_of(count, file[-4]) for file, count in counts.items()}))

    assert {file: len(file_chunks) for file, file_chunks in book.items()} == counts
    assert all(len({chunk.parent_doc_id for chunk in file_chunks}) == 1 for file_chunks in book.values())
    assert len({file_chunks[0].parent_doc_id for file_chunks in book.values()}) == 3
    for file_chunks in book.values():
        ids = [chunk.id for chunk in file_chunks]
        assert [chunk.prev_chunk_id for chunk in file_chunks] == [None, *ids[:-1]]
        assert [chunk.next_chunk_id for chunk in file_chunks] == [*ids[1:], None]
        assert [chunk.chunk_index for chunk in file_chunks] == list(range(len(file_chunks)))
        assert {chunk.total_chunks for chunk in file_chunks} == {len(file_chunks)}
    assert len({chunk.id for file_chunks in book.values() for chunk in file_chunks}) == 9


def test_the_designs_counterexample(tmp_path: Path) -> None:
    """Change the middle of three: its neighbours keep their ids and point at the new one; nothing names the old."""
    file = "ros2/1-c/01-a.md"
    write(tmp_path, {file: lesson_of(3, "a"), "vla/x.md": BODY})
    before = read_book(tmp_path)[file]
    write(tmp_path, {file: lesson_of(3, "a").replace("a1x50 ", "another ")})
    after = read_book(tmp_path)[file]

    assert (after[0].id, after[2].id) == (before[0].id, before[2].id)
    assert after[1].id != before[1].id
    assert (after[0].next_chunk_id, after[2].prev_chunk_id) == (after[1].id, after[1].id)
    assert before[1].id not in {
        name for chunk in after for name in (chunk.id, chunk.prev_chunk_id, chunk.next_chunk_id)
    }


def test_ids_are_the_designs(tmp_path: Path) -> None:
    """uuid5 of book, module, chapter, lesson and the text's hash; the parent's with `parent`."""
    (chunk,) = read_book(write(tmp_path, {"ros2/3-c/02-a.md": BODY, "vla/x.md": BODY}))["ros2/3-c/02-a.md"]

    place = "physical-ai-robotics:ros2:3:2"
    assert chunk.id == str(uuid.uuid5(CHUNK_SPACE, f"{place}:{content_hash(chunk.text)[:16]}"))
    assert chunk.parent_doc_id == str(uuid.uuid5(CHUNK_SPACE, f"{place}:parent"))
    assert chunk.content_hash == content_hash(chunk.text)


def test_a_text_that_comes_again_is_another_chunk(tmp_path: Path) -> None:
    """Its second and third occurrence have their own ids, so the chain stays a chain."""
    section = f"## Same\n\n{words(100)}"

    lesson_chunks = chunks(tmp_path, "\n\n".join([section] * 3))

    assert len({chunk.text for chunk in lesson_chunks}) == 1
    assert len({chunk.id for chunk in lesson_chunks}) == 3
    place = "book:main:0:1"
    assert lesson_chunks[1].id == str(uuid.uuid5(CHUNK_SPACE, f"{place}:{lesson_chunks[1].content_hash[:16]}:2"))


def test_doubled_places_have_their_own_ids(tmp_path: Path) -> None:
    """Two files at one place share neither a parent nor a chunk id, even with the same words."""
    book = read_book(write(tmp_path, {"m/1-c/01-a.md": BODY, "m/1-c/01-b.md": BODY, "n/x.md": BODY}))
    first, second = book["m/1-c/01-a.md"][0], book["m/1-c/01-b.md"][0]

    assert first.text == second.text
    assert first.parent_doc_id != second.parent_doc_id
    assert first.id != second.id
    place = "physical-ai-robotics:m:1:1"
    assert second.parent_doc_id == str(uuid.uuid5(CHUNK_SPACE, f"{place}:parent:m/1-c/01-b.md"))


def test_a_file_that_changed_since_the_survey_is_refused(tmp_path: Path) -> None:
    """Changed, shortened or gone: the caller surveys again rather than mix two states."""
    book_survey = survey(write(tmp_path, {"a.md": BODY}))
    (lesson,) = book_survey.lessons

    for change in (lambda: (tmp_path / "a.md").write_text(BODY + "more"), (tmp_path / "a.md").unlink):
        change()
        with pytest.raises(FileChanged) as caught:
            read_lesson(tmp_path, lesson, book_survey.manifest)
        assert caught.value.source_file == "a.md"


def test_everything_travels_between_processes(tmp_path: Path) -> None:
    """Surveys, lessons, rules, results and FileChanged can be pickled."""
    book_survey = survey(write(tmp_path, {"a.md": BODY}))
    result = read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest)

    for value in (book_survey, result, ReadingRules()):
        assert pickle.loads(pickle.dumps(value)) == value
    assert pickle.loads(pickle.dumps(FileChanged("a.md"))).source_file == "a.md"


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    """Nothing depends on time, order or process."""
    write(tmp_path, {f"m/{number}-c/01-a.md": lesson_of(3, f"l{number}") for number in range(1, 4)})

    assert survey(tmp_path) == survey(tmp_path)
    assert read_book(tmp_path) == read_book(tmp_path)


BASE = {"m/README.md": "# Module\n\nAbout this module.\n", "m/1-c/01-a.md": BODY, "n/x.md": BODY}


@pytest.mark.parametrize(
    "change",
    [
        {"m/1-c/01-a.md": BODY + "More."},
        {"m/1-c/01-a.md": f"---\nlayer: L3\n---\n{BODY}"},
        {"m/README.md": "# Renamed\n\nAbout this module.\n"},
        {"m/1-c/README.md": "# Chapter\n\nAbout this chapter.\n"},
        {"m/1-c/_category_.json": '{"label": "Labelled"}'},
        {"lectern.toml": "base_url = 'https://example.org'"},
        {"lectern.toml": "site = 'mkdocs'"},
        {"lectern.toml": "[defaults]\nhardware_tier = 3"},
        {"lectern.toml": "book_id = 'other'"},
        {"lectern.toml": "language = 'de'"},
        {"lectern.toml": "[[modules]]\nslug = 'z'\nfolder = 'm'"},
        {"m/1-c/01-A.md": BODY},
    ],
)
def test_a_digest_changes_with_everything_that_reaches_a_chunk(tmp_path: Path, change: dict[str, str]) -> None:
    """Bytes, place, titles, address, values, site, book: each alone makes the lesson modified."""
    before = lessons_by_file(survey(write(tmp_path, BASE)))["m/1-c/01-a.md"]
    after = lessons_by_file(survey(write(tmp_path, change)))["m/1-c/01-a.md"]

    assert before.digest != after.digest


def test_a_digest_has_the_site_even_where_the_page_is_the_same(tmp_path: Path) -> None:
    """Two generators may give a page one address and its headings different anchors."""
    write(tmp_path, {"README.md": BODY})

    digests = set()
    for site in ("docusaurus", "mkdocs"):
        (lesson,) = survey(write(tmp_path, {"lectern.toml": f"site = '{site}'"})).lessons
        assert lesson.url == "/"
        digests.add(lesson.digest)

    assert len(digests) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"n/y.md": BODY},
        {"lectern.toml": "[reader]\nhardware_tier = 2"},
        {"lectern.toml": "title = 'Another title'"},
        {"m/1-c/02-b.md": BODY},
        {"m/1-c/image.png": b"x"},
    ],
)
def test_a_digest_stays_while_nothing_reaches_the_lesson(tmp_path: Path, change: dict[str, str | bytes]) -> None:
    """A neighbour's words or a value that no chunk carries do not touch it."""
    before = lessons_by_file(survey(write(tmp_path, BASE)))["m/1-c/01-a.md"]
    after = lessons_by_file(survey(write(tmp_path, change)))["m/1-c/01-a.md"]

    assert before.digest == after.digest


def test_a_digest_has_the_readers_version_and_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reader or another target is another reading; a limit that only refuses files is not."""
    write(tmp_path, {"a.md": BODY})

    def digest(**changes: int) -> str:
        return survey(tmp_path, rules=replace(ReadingRules(), **changes)).lessons[0].digest

    first = digest()
    assert digest(target_tokens=200) != first
    assert digest(max_file_bytes=10_000) == first
    monkeypatch.setattr(rules_module, "READER_VERSION", "another")
    assert digest() != first


def test_a_digest_has_the_version_of_the_lexical_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where words are split or stemmed otherwise, every lesson's terms are made again."""
    write(tmp_path, {"a.md": BODY})
    first = survey(tmp_path).lessons[0].digest
    monkeypatch.setattr(survey_module, "LEXICAL_VERSION", "another")

    assert survey(tmp_path).lessons[0].digest != first


@pytest.mark.parametrize(
    ("language", "stemmed"),
    [("en-US", "en"), ("EN", "en"), ("en_GB", "en"), ("pt-BR", "pt"), ("zh-Hant-TW", "zh"), ("nb-NO", "no")],
)
def test_a_languages_region_and_case_keep_its_stemmer(tmp_path: Path, language: str, stemmed: str) -> None:
    """`en-US` is English: the same words, the same terms."""
    text = "The running nodes were running. Os nós estavam correndo. Bilene kjører fort. 機器人學"
    declared = surveyed(tmp_path, {"a.md": BODY, "lectern.toml": f"language = '{language}'"}).manifest.language
    declared_terms, theirs = (passage_terms(["T"], text, code) for code in (declared, stemmed))

    assert (declared_terms.indices, declared_terms.values) == (theirs.indices, theirs.values)
    assert query_terms("running", language).indices == query_terms("running", stemmed).indices


def test_a_file_that_breaks_the_survey_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw costs the file it happened in: an error that says what and what to do, the others go on."""

    def broken(body: str, **_: bool) -> str:
        if "odd" in body:
            raise ZeroDivisionError
        return "A title"

    monkeypatch.setattr(survey_module, "title_heading", broken)
    book_survey = surveyed(tmp_path, {"a.md": BODY, "b.md": f"{BODY}odd"})

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    [problem] = book_survey.problems
    assert (problem.file, problem.severity) == ("b.md", "error")
    assert "ZeroDivisionError" in problem.message
    assert "exclude" in problem.message


def test_a_file_that_breaks_the_reader_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what happens while its body is cut; only being interrupted is not caught."""
    book_survey = surveyed(tmp_path, {"a.md": BODY})
    for broken in (OverflowError, KeyboardInterrupt):
        monkeypatch.setattr(lessons_module, "read_body", Mock(side_effect=broken))
        if broken is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest)
            continue
        result = read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest)

        assert result.chunks == ()
        [problem] = result.problems
        assert (problem.file, problem.severity) == ("a.md", "error")
        assert "OverflowError" in problem.message


def test_line_numbers_count_front_matter(tmp_path: Path) -> None:
    """A chunk's lines are those an editor shows."""
    lesson_chunks = chunks(
        tmp_path, f"---\ntitle: T\nlayer: L1\n---\n\n# Head\n\n{words(100)}\n\n## More\n\n{words(100)}\n"
    )

    assert [(chunk.line_start, chunk.line_end) for chunk in lesson_chunks] == [(6, 8), (10, 12)]


def test_nothing_in_a_lesson_is_ever_fetched_or_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images, links and includes are words: one file is opened, and nothing else."""
    write(
        tmp_path, {"a.md": BODY + "![x](http://169.254.169.254/x) ![y](file:///etc/passwd)\n\n{{#include ../b.md}}\n"}
    )
    book_survey = survey(tmp_path)
    opened: list[str] = []
    open_file = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(str(path)) or open_file(path, *rest))
    result = read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest)

    assert [Path(path).name for path in opened] == ["a.md"]
    assert "{{#include ../b.md}}" in result.chunks[0].text


def test_short_sections_that_share_a_chunk_keep_their_own_links(tmp_path: Path) -> None:
    """Where a chunk holds several sections, each begins at its mark, and the mark's link opens there."""
    body = "# Parts\n\n## Motor\n\nIt turns the wheel.\n\n## Motor\n\nThe second one.\n\n### Gear {#g}\n\nIt slows.\n"
    write(tmp_path, {"mkdocs.yml": "site_name: x\n"})
    [chunk] = chunks(tmp_path, body, file="docs/01-parts.md")

    assert [(mark.title, mark.url.partition("#")[2]) for mark in chunk.sections] == [
        ("Parts", "parts"),
        ("Motor", "motor"),
        ("Motor", "motor_1"),
        ("Gear", "g"),
    ]
    for mark in chunk.sections:
        assert chunk.text[mark.at :].lstrip("# ").startswith(mark.title)
    assert chunk.section_at(chunk.text.index("The second")) == chunk.sections[2]
    assert chunk.section_at(chunk.text.index("slows")) == chunk.sections[3]


def test_a_chunk_of_one_section_needs_no_marks(tmp_path: Path) -> None:
    """Its own link opens there already."""
    read = chunks(tmp_path, lesson_of(3, "a"))

    assert [chunk.sections for chunk in read] == [(), (), ()]
    assert read[0].section_at(5) is None
