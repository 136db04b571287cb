"""No lesson brings anything active into a page, wherever its author puts it. The HTML is read with a parser of its own,
and compared with a list of what the page expects."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

import pytest

from lectern.rendering.lessons import LessonInBook
from tests.lesson_pages import lessons_in, page_of
from tests.unit.payloads import PAYLOADS, PLACES, VECTORS, lesson_with

TAGS = frozenset(
    "a abbr aside b blockquote br code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd li "
    "mark ol p pre s section span strong sub summary sup table tbody td th thead tr ul".split()
)
FORMULA_TAGS = frozenset(
    "math menclose mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt "
    "mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none".split()
)
ATTRIBUTES = frozenset(
    "class id href rel target title alt start value colspan rowspan scope open tabindex width height data-lines "
    "data-file data-language data-label data-lesson data-anchor".split()
)
FORMULA_ATTRIBUTES = frozenset(
    "display mathvariant stretchy fence separator lspace rspace minsize maxsize accent accentunder form linethickness "
    "width height depth voffset columnalign rowspacing columnspacing columnlines rowlines displaystyle scriptlevel "
    "notation".split()
)
WITH_ID = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "li", "sup"})
SAFE_ADDRESS = re.compile(r"(?:https?://|mailto:|[?#])")


class Inspector(HTMLParser):
    """Lists what the page does not expect."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.findings: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check an element and its attributes."""
        formula = tag in FORMULA_TAGS
        if not formula and tag not in TAGS:
            self.findings.append(f"<{tag}>")
        for name, value in attrs:
            known = name in (FORMULA_ATTRIBUTES | {"data-lines"} if formula else ATTRIBUTES)
            if not known or (name == "id" and tag not in WITH_ID):
                self.findings.append(f"<{tag} {name}>")
            if name == "href" and not SAFE_ADDRESS.match(value or ""):
                self.findings.append(f"<{tag} href={value!r}>")
            if name == "data-file" and re.match(r"[a-z]+:|/|.*\.\./", value or ""):
                self.findings.append(f"<{tag} data-file={value!r}>")

    def handle_comment(self, data: str) -> None:
        """Comments are no text."""
        self.findings.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """Declarations are no text."""
        self.findings.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        """Instructions are no text."""
        self.findings.append(f"<?{data}>")


def lessons_with(folder: Path, config: str, place: str) -> list[LessonInBook]:
    """A book with one lesson for each vector."""
    return book_of(folder, config, [lesson_with(vector, place) for vector in VECTORS])


def lessons_with_payloads(folder: Path, config: str) -> list[LessonInBook]:
    """A book with one lesson for each payload, each in another place than the one before."""
    texts = [lesson_with(payload, place) for payload, place in zip(PAYLOADS, cycle(PLACES), strict=False)]
    return book_of(folder, config, texts)


def book_of(folder: Path, config: str, texts: list[str]) -> list[LessonInBook]:
    """A book with these lessons."""
    (folder / config).write_text("", encoding="utf-8")
    (folder / "docs").mkdir()
    for number, text in enumerate(texts):
        suffix = "mdx" if config.startswith("docusaurus") and number % 2 else "md"
        (folder / "docs" / f"{number:03}-lesson.{suffix}").write_text(text, encoding="utf-8")
    return list(lessons_in(folder))


@pytest.mark.parametrize("config", ["docusaurus.config.js", "mkdocs.yml"])
@pytest.mark.parametrize("place", PLACES)
def test_a_payload_stays_text(tmp_path: Path, place: str, config: str) -> None:
    """The page of a lesson with a payload has only elements, attributes and addresses that are listed here, whether it
    comes from the file or from the index."""
    lessons = lessons_with(tmp_path, config, place)

    assert len(lessons) > len(VECTORS) * 2 / 3  # a lesson whose text is all markup is not indexed
    findings = {}
    for lesson in lessons:
        for from_file in (True, False):
            page = page_of(lesson, from_file=from_file)
            if unexpected := Inspector(page.html).findings:
                findings[lesson.chunks[0].source_file, page.origin] = (unexpected, lesson.chunks[0].text[:200])
    assert findings == {}


@pytest.mark.parametrize("config", ["docusaurus.config.js", "mkdocs.yml"])
def test_every_payload_stays_text(tmp_path: Path, config: str) -> None:
    """Three hundred payloads, spread over all places."""
    lessons = lessons_with_payloads(tmp_path, config)

    assert len(lessons) > len(PAYLOADS) * 2 / 3
    findings = {lesson.chunks[0].text[:200]: Inspector(page_of(lesson).html).findings for lesson in lessons}
    assert {text: found for text, found in findings.items() if found} == {}


def test_there_are_enough_payloads() -> None:
    """At least three hundred different payloads are tried, and the inspection finds what it looks for."""
    assert len(set(PAYLOADS)) >= 300
    active = '<script>x</script><p onclick="a" style="b" id="c"><a href="javascript:x"><img src="x" data-file="../a">'
    assert len(Inspector(active).findings) == 7


NAMES = ['a"onerror=alert(1).png', "a'><script>.png", "<svg onload=x>.png", "javascript:alert(1).png", "ü & ß.png"]


@pytest.mark.parametrize("name", NAMES)
def test_file_names_stay_values(tmp_path: Path, name: str) -> None:
    """The names of images and lessons can have any character."""
    (tmp_path / name).write_bytes(b"x")
    lesson = tmp_path / f"{name.removesuffix('.png')}.md"
    lesson.write_text(f"# A\n\nText of the lesson ![b](<./{name}>) [c](<./{lesson.name}>)\n", encoding="utf-8")

    for page in (page_of(entry) for entry in lessons_in(tmp_path)):
        assert Inspector(page.html).findings == []
