"""`lectern.toml`: everything it can say, and everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.domain.books import Defaults, ModuleInfo
from lectern.domain.errors import BadManifest
from lectern.reading.manifest import infer_book_id, read_manifest
from lectern.reading.names import slugged
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, write

FULL = """
book_id  = "physical-ai-robotics"
title    = "Physical AI & Humanoid Robotics"
base_url = "https://example.org/docs"
site     = "docusaurus"
exclude  = ["blog/**"]
language = "de"

[[modules]]
slug = "ros2"
folder = "module-1-ros2"
title = "The Robotic Nervous System"

[module_aliases]
"The Middleware" = "ROS2"

[defaults]
hardware_tier = 2
proficiency_level = "B1"
layer = "L2"

[reader]
hardware_tier = 4

[limits]
max_chapter = 20
max_lesson = 15
"""


def test_every_key_arrives(tmp_path: Path) -> None:
    """All that a manifest can say is in the survey's manifest, unchanged."""
    manifest = survey(write(tmp_path, {"lectern.toml": FULL, "module-1-ros2/a.md": BODY})).manifest

    assert manifest.book_id == "physical-ai-robotics"
    assert manifest.title == "Physical AI & Humanoid Robotics"
    assert manifest.base_url == "https://example.org/docs"
    assert manifest.site == "docusaurus"
    assert manifest.exclude == ("blog/**",)
    assert manifest.language == "de"
    assert manifest.modules == (ModuleInfo(slug="ros2", folder="module-1-ros2", title="The Robotic Nervous System"),)
    assert manifest.module_aliases == (("the-middleware", "ros2"),)
    assert manifest.defaults == Defaults(hardware_tier=2, proficiency_level="B1", layer="L2")
    assert (manifest.reader_tier, manifest.max_chapter, manifest.max_lesson) == (4, 20, 15)


def test_defaults_reach_lessons_that_say_nothing(tmp_path: Path) -> None:
    """The manifest's values hold where front matter is silent, and only there."""
    files = {"lectern.toml": FULL, "a.md": BODY, "b.md": f"---\nhardware_tier: 3\nlayer: L4\n---\n{BODY}"}

    lessons = lessons_by_file(survey(write(tmp_path, files)))

    assert (lessons["a.md"].hardware_tier, lessons["a.md"].proficiency_level, lessons["a.md"].layer) == (2, "B1", "L2")
    assert (lessons["b.md"].hardware_tier, lessons["b.md"].proficiency_level, lessons["b.md"].layer) == (3, "B1", "L4")


def test_built_in_defaults_are_the_designs(tmp_path: Path) -> None:
    """Without a word anywhere a lesson has tier 1, level A2, layer L1; no reader tier and no limits."""
    book_survey = survey(write(tmp_path, {"a.md": BODY}))
    (lesson,) = book_survey.lessons

    assert (lesson.hardware_tier, lesson.proficiency_level, lesson.layer) == (1, "A2", "L1")
    assert (book_survey.manifest.reader_tier, book_survey.manifest.max_chapter, book_survey.manifest.language) == (
        None,
        None,
        "en",
    )


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("book_id = [", "not valid TOML"),
        ("exlude = []", "did you mean 'exclude'"),
        ("[default]\nlayer = 'L1'", "did you mean 'defaults'"),
        ("[defaults]\ntier = 1", "defaults.tier"),
        ("book_id = 7", "book_id = 7"),
        ("book_id = ' '", "book_id"),
        ("site = 'hugo'", "docusaurus, mkdocs, mdbook, plain"),
        ("base_url = 'example.org'", "base_url"),
        ("exclude = 'blog'", "exclude"),
        ("exclude = [1]", "exclude"),
        ("language = 'e n!'", "language"),
        ("[defaults]\nhardware_tier = 5", "1, 2, 3, 4"),
        ("[defaults]\nhardware_tier = '1'", "hardware_tier"),
        ("[defaults]\nhardware_tier = true", "hardware_tier"),
        ("[defaults]\nproficiency_level = 'a2'", "A1, A2"),
        ("[defaults]\nlayer = 'L9'", "L1, L2"),
        ("[reader]\nhardware_tier = 0", "reader.hardware_tier"),
        ("[limits]\nmax_chapter = -1", "max_chapter"),
        ("defaults = 3", "table"),
        ("modules = 3", "modules"),
        ("module_aliases = 3", "module_aliases"),
        ("[module_aliases]\nsimulation = 3", "module_aliases.simulation"),
        ("[[modules]]\ntitle = 'x'", "neither slug nor folder"),
        ("[[modules]]\nfolder = '../x'", "inside the book"),
        ("[[modules]]\nslug = 'a'\nfolder = 'x'\n[[modules]]\nslug = 'a'\nfolder = 'y'", "two"),
    ],
)
def test_a_wrong_manifest_says_what_to_write(tmp_path: Path, toml: str, says: str) -> None:
    """Nothing that is misspelt or out of range is silently ignored."""
    with pytest.raises(BadManifest, match=says):
        read_manifest(write(tmp_path, {"lectern.toml": toml}))


def test_a_manifest_outside_the_book_is_not_followed(tmp_path: Path) -> None:
    """A linked manifest cannot bring in a file from elsewhere."""
    write(tmp_path, {"secret.toml": "book_id = 'x'", "book/a.md": BODY})
    (tmp_path / "book" / "lectern.toml").symlink_to(tmp_path / "secret.toml")

    with pytest.raises(BadManifest, match="out of the book"):
        read_manifest(tmp_path / "book")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("robolearn/docs", "robolearn"),
        ("Physical AI/src/content", "physical-ai"),
        ("my-book/modules", "my-book"),
        ("x/book/site/source", "x"),
        ("Über_uns", "über-uns"),
    ],
)
def test_book_id_is_the_nearest_name_that_names_a_book(tmp_path: Path, path: str, expected: str) -> None:
    """Folders that every book has do not name it."""
    (tmp_path / path).mkdir(parents=True)

    assert infer_book_id(tmp_path / path) == expected


def test_a_given_book_id_wins(tmp_path: Path) -> None:
    """The caller's name for the book stands above the manifest's, and is slugged like any."""
    book_survey = survey(write(tmp_path, {"lectern.toml": "book_id = 'a'", "a.md": BODY}), book_id="My Book: 2nd")

    assert book_survey.manifest.book_id == "my-book-2nd"
    assert str(book_survey.lessons[0].place).startswith("my-book-2nd:main:")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Module 1: ROS 2", "module-1-ros-2"),
        ("a:b:c", "a-b-c"),
        ("--x--", "x"),
        ("ÄÖÜ ß", "äöü-ß"),
        ("第一章 入門", "第一章-入門"),
        ("ماڈیول ۱", "ماڈیول-۱"),
        ("𝐀𝐁", "ab"),
        ("x²", "x2"),
    ],
)
def test_slugs(name: str, expected: str) -> None:
    """Letters of any script, lower case, digits and hyphens; nothing else."""
    assert slugged(name) == expected


def test_slugs_are_never_empty_long_or_confused() -> None:
    """A name without letters gets one, a long one is cut, and two long ones that begin alike stay two."""
    assert slugged("!!!").startswith("x-")
    assert len(slugged("a" * 200)) == 64
    assert slugged("a" * 200) != slugged("a" * 201)


def test_an_unused_module_is_a_warning(tmp_path: Path) -> None:
    """A module whose folder holds nothing is most likely misspelt."""
    toml = '[[modules]]\nslug = "vla"\nfolder = "module-9"\n'

    book_survey = survey(write(tmp_path, {"lectern.toml": toml, "a.md": BODY}))

    assert [(problem.file, problem.severity) for problem in book_survey.problems] == [("lectern.toml", "warning")]
    assert "module-9" in book_survey.problems[0].message


def test_an_alias_of_no_module_is_a_warning(tmp_path: Path) -> None:
    """The warning names the modules that there are."""
    toml = '[module_aliases]\nstart = "main"\nsimulation = "gazebo"\n'

    book_survey = survey(write(tmp_path, {"lectern.toml": toml, "a.md": BODY}))

    assert [problem.message for problem in book_survey.problems] == [
        "module_aliases: 'simulation' means 'gazebo', and there is no such module; name one of main"
    ]
