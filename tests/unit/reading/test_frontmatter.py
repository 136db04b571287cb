"""Front matter in all its shapes: what is taken, what is reported, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.reading.frontmatter import open_front_matter
from lectern.reading.lessons import read_lesson
from lectern.reading.problems import Unreadable
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, surveyed, write

LIMIT = 64 * 1024


def opened(yaml: str, body: str = BODY):
    """Front matter of this YAML."""
    return open_front_matter("a.md", f"---\n{yaml}\n---\n{body}", LIMIT)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("hardware_tier: 2", 2),
        ("hardware_tier: '2'", 2),
        ('hardware_tier: "Tier 3"', 3),
        ("hardware_tier: tier-4", 4),
        ("hardware_tier: T2", 2),
        ("hardware_tier: 1 (laptop or cloud)", 1),
        ("hardware_tier: 2-3", 2),
        ("hardware_tier: Hardware Tier 2", 2),
        ("hardware_tier: tier 1-2", 1),
        ("hardware_tier: Tiers 3 and 2", 2),
        ("hardware_tier: T3/T2", 2),
        ("hardware_tier: 'Tier 2: a laptop with 8 GB'", 2),
        ("hardware_tier: Tier 3 (Jetson Orin 4)", 3),
        ("hardware_tier: 2+", 2),
        ("hardware_tier: Tier 1 or above", 1),
        ("hardware_tier: [3, 2]", 2),
        ("hardware_tier:\n  - 4", 4),
        ("hardware-tier: 2", 2),
        ("Hardware_Tier: 2", 2),
    ],
)
def test_tiers_in_the_shapes_that_books_write(yaml: str, expected: int) -> None:
    """Whatever has one obvious meaning is that tier, without a warning."""
    result = opened(yaml)

    assert (result.front.hardware_tier, result.problems) == (expected, ())


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("proficiency_level: B1", "B1"),
        ("proficiency_level: b1", "B1"),
        ('proficiency_level: "A2-B1"', "A2"),
        ("proficiency_level: CEFR A2", "A2"),
        ("proficiency_level: [C1, B2]", "B2"),
        ("proficiency_level: B1+", "B1"),
        ("cefr_level: C2", "C2"),
        ("proficiency: B2", "B2"),
        ("proficiency_level: ''\ncefr_level: A1", "A1"),
    ],
)
def test_levels_in_the_shapes_that_books_write(yaml: str, expected: str) -> None:
    """A range takes its lower end, other keys for the same thing count."""
    result = opened(yaml)

    assert (result.front.proficiency_level, result.problems) == (expected, ())


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("layer: L3", "L3"),
        ("layer: l3", "L3"),
        ("layer: 2", "L2"),
        ('primary_layer: "Layer 2"', "L2"),
        ("layer: 'Layer 1: Manual Foundation'", "L1"),
        ("layer: L2-L3", "L2"),
        ("layer: [L4, L2]", "L2"),
    ],
)
def test_layers_in_the_shapes_that_books_write(yaml: str, expected: str) -> None:
    """A bare number and the word are the same layer."""
    result = opened(yaml)

    assert (result.front.layer, result.problems) == (expected, ())


@pytest.mark.parametrize(
    "yaml",
    [
        "hardware_tier: 5",
        "hardware_tier: 0",
        "hardware_tier: all",
        "hardware_tier: true",
        "hardware_tier: {a: 1}",
        "hardware_tier: 2.5",
        "hardware_tier: Raspberry Pi 4",
        "hardware_tier: 4 GB",
        "hardware_tier: T4 GPU",
        "hardware_tier: RTX 3",
        "hardware_tier: -2",
        "hardware_tier: Tier 12",
        "hardware_tier: [Tier 1, Raspberry Pi 4]",
        "proficiency_level: beginner",
        "proficiency_level: D1",
        "layer: L5",
        "layer: top",
        "layer: step 4 of 9",
        "layer: 3 of them",
    ],
)
def test_what_has_no_obvious_meaning_is_reported(yaml: str) -> None:
    """The default holds and a warning names key, value and line."""
    (problem,) = opened(yaml).problems

    assert problem.severity == "warning"
    assert problem.line == 2
    assert yaml.split(":", maxsplit=1)[0] in problem.message


@pytest.mark.parametrize("yaml", ["hardware_tier:", "layer: ''", "proficiency_level: ~", "title: null", "chapter: []"])
def test_empty_values_say_nothing(yaml: str) -> None:
    """An empty value is no value, and nothing to warn about."""
    result = opened(yaml)

    assert result.problems == ()
    assert result.front.title is None


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("chapter: 3", 3),
        ("chapter: '3'", 3),
        ("chapter: 09", 9),
        ("chapter: 07", 7),
        ("chapter: 0", 0),
        ("chapter: 1.1", None),
        ("chapter: 3.0", None),
        ("chapter: -2", None),
        ("chapter: true", None),
        ("chapter: 'Chapter 1: Nodes'", None),
        ("chapter: 99999999999999999999999", None),
        ("chapter: 2024-05-01", None),
    ],
)
def test_only_whole_numbers_are_numbers(yaml: str, expected: int | None) -> None:
    """`09` and `"3"` are; a float, a date and a sentence are not."""
    assert opened(yaml).front.chapter == expected


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("title: Nodes", "Nodes"),
        ("title: 'Lesson 1: Nodes'", "Lesson 1: Nodes"),
        ("title: 2024-05-01", "2024-05-01"),
        ("title: 007", "007"),
        ("title: yes", "yes"),
        ("title: 1.10", "1.10"),
        ("title: >\n  two\n  lines", "two lines"),
        ("title: |\n  two\n  lines", "two lines"),
        ("title: [a, b]", None),
        ("title: {a: b}", None),
        ("title: !wow", None),
    ],
)
def test_a_title_is_what_the_author_wrote(yaml: str, expected: str | None) -> None:
    """No YAML type stands between the author and the title."""
    assert opened(yaml).front.title == expected


def test_an_endless_title_is_cut() -> None:
    """A title would be repeated in every chunk."""
    title = opened("title: " + "x" * 5000).front.title

    assert title is not None
    assert len(title) == 300


def test_a_key_written_twice_is_reported() -> None:
    """The first value is taken, which is one of the two that the author can have meant."""
    result = opened("title: One\nlayer: L1\ntitle: Two")

    assert result.front.title == "One"
    assert [(problem.line, "twice" in problem.message) for problem in result.problems] == [(4, True)]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\ntitle: A: B\n---\n# Head\n\ntext\n", "# Head\n\ntext\n"),
        ("---\ntitle: [a\nlayer: L2\n---\n# Head\n", "# Head\n"),
        ("---\n\ttabs: x\n---\nbody\n", "body\n"),
        ("---\ntitle: A: B\n\n# Head\n\ntext\n\n---\nmore\n", "# Head\n\ntext\n\n---\nmore\n"),
    ],
)
def test_broken_yaml_costs_the_metadata_not_the_text(text: str, body: str) -> None:
    """Values are ignored with a warning; whatever is text is kept, even between the two lines."""
    result = open_front_matter("a.md", text, LIMIT)

    assert [problem.severity for problem in result.problems] == ["warning"]
    assert "\n".join(text.split("\n")[result.body_line :]) == body
    assert result.front.title is None


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: A\n\n# Head\n\nnever closed\n",
        "---\n\n# A rule comes first\n\n---\n\ntext\n",
        "---\njust some words\n---\ntext\n",
        "---\n- a\n- b\n---\ntext\n",
        "----\ntitle: x\n----\n",
        "text\n---\ntitle: x\n---\n",
    ],
)
def test_what_is_no_front_matter_is_text(text: str) -> None:
    """A rule at the top, or front matter that is never closed, loses no word."""
    assert open_front_matter("a.md", text, LIMIT).body_line == 0


def test_empty_front_matter_is_nothing() -> None:
    """Two lines with nothing between are no reason for a warning."""
    result = open_front_matter("a.md", "---\n---\ntext\n", LIMIT)

    assert (result.body_line, result.problems) == (2, ())


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{name}: &{name} [*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before}]"
    for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    "yaml",
    [
        BOMB,
        "a: &a [*a, *a]",
        "title: !!python/object/apply:os.system ['true']",
        "title: !!python/name:os.system ''",
        "x: [!!python/object:a.B {}]",
        "a: " + "[" * 3000 + "]" * 3000,
        "a: " + "{a: " * 3000 + "}" * 3000,
        "- " * 20_000 + "a",
        "-  " * 20_000 + "a",
        "? " * 20_000 + "a",
        "title: " + "x" * LIMIT,
        "\n".join(f"k{number}: v" for number in range(12_000)),
    ],
)
def test_yaml_that_means_harm_costs_the_file(tmp_path: Path, yaml: str) -> None:
    """Bombs, object tags, depth and size are refused at once, and only for that file."""
    book_survey = surveyed(tmp_path, {"bad.md": f"---\n{yaml}\n---\n{BODY}", "good.md": BODY})

    assert [lesson.source_file for lesson in book_survey.lessons] == ["good.md"]
    assert [(problem.file, problem.severity) for problem in book_survey.problems] == [("bad.md", "error")]


@pytest.mark.parametrize(
    "yaml",
    [
        "me: &me A. Author\nauthors: [*me]",
        "title: 'Q&A * more!'",
        "tags: [" + "[a], " * 60 + "b]",
        "x: !custom y",
        "a: !!str 5",
        "q: 'What? - - yes'",
    ],
)
def test_harmless_yaml_is_not_taken_for_harm(yaml: str) -> None:
    """A single alias, an exclamation mark or many brackets are everyday front matter."""
    assert opened(yaml).problems == ()


def test_front_matter_cannot_set_what_is_not_its_business(tmp_path: Path) -> None:
    """Ids, book, generation and the rest of the payload come from the reader, whatever a file claims."""
    claims = "book_id: other\nparent_doc_id: x\ngeneration: 9\nid: my-id\nsource_file: /etc/passwd\nchunk_index: 7\n"
    claims += "content_hash: beef\nversion: 99\nurl: https://evil.example\nsource_file_hash: 0\nbook: other\n"
    book_survey = survey(write(tmp_path, {"a.md": f"---\n{claims}---\n{BODY}"}), book_id="mine")

    (chunk,) = read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest).chunks

    assert chunk.book_id == "mine"
    assert chunk.source_file == "a.md"
    assert chunk.chunk_index == 0
    assert chunk.url.startswith("/a.md")
    assert "evil" not in repr(chunk)


def test_deep_but_honest_nesting_is_read(tmp_path: Path) -> None:
    """Metadata of ten levels is unusual, not hostile."""
    nested = "\n".join("  " * depth + f"k{depth}:" for depth in range(10)) + " v"

    book_survey = surveyed(tmp_path, {"a.md": f"---\ntitle: Deep\n{nested}\n---\n{BODY}"})

    assert lessons_by_file(book_survey)["a.md"].page_title == "Deep"


def test_hostile_yaml_raises_with_its_line() -> None:
    """The report can point at the line."""
    with pytest.raises(Unreadable) as caught:
        opened("title: a\nx: !!python/object:os.X {}")

    assert caught.value.line == 3
