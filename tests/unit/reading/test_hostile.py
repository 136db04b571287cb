"""Files made to hurt: each is read or refused in time that grows with its size, and never in much memory."""

from __future__ import annotations

import multiprocessing
import resource
import time
from pathlib import Path

import pytest

from lectern.reading.chunking import ReadingRules
from lectern.reading.files import MARKS_PER_TAG
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey

LIMITS = ReadingRules()
CHARS = LIMITS.max_file_bytes - 1000  # of a file that is just let pass, if they are ASCII
LINES = LIMITS.max_lines - 10
MARKS = LIMITS.max_markup - 10
MAX_WAIT_SECONDS = 300  # however busy the machine is
MEMORY = 200  # MiB
A_MOMENT = 8  # seconds of a processor: each takes about two on a quiet machine, and minutes if it were not linear


def most(unit: str) -> int:
    """How often a unit fits a file that is read: by its bytes, its lines and its tags."""
    marks = unit.count("<") + unit.count("{/*") + unit.count("`") / MARKS_PER_TAG
    lines = unit.count("\n")
    return int(min(CHARS / len(unit.encode()), LINES / (lines or 0.001), MARKS / (marks or 0.001)))


def pattern(unit: str, before: str = "", after: str = ""):
    """A text made of one unit, of this share of what is let pass."""
    return lambda share: before + unit * max(1, int(share * most(unit))) + after


def chars(share: float, of: int = CHARS) -> int:
    """A share of the characters that a file may have."""
    return int(share * of)


TICKS = MARKS * MARKS_PER_TAG
HOSTILE = {
    "backticks": lambda share: "`" * chars(share, TICKS) + "a",
    "growing backticks": lambda share: " ".join(
        "`" * length for length in range(1, int((2 * chars(share, TICKS)) ** 0.5))
    ),
    "brackets": pattern("["),
    "links": pattern("[a]("),
    "emphasis": pattern("*a **a "),
    "emphasis in headings": pattern("# " + "*a_" * 120 + "\n\ntext\n\n"),
    "one endless heading": pattern("*a_", "# "),
    "spaces in a heading": pattern(" ", "# alpha beta", "gamma"),
    "hashes in a heading": pattern("#", "# a ", "b"),
    "nested quotes": pattern(">", after=" a"),
    "nested lists": pattern("- ", after="a"),
    "lists as stairs": lambda share: "".join(
        "  " * depth + "- a\n" for depth in range(int((0.9 * chars(share)) ** 0.5))
    ),
    "one line of words": pattern("ab cd "),
    "one paragraph of many lines": pattern("a line of words\n"),
    "one word": pattern("a"),
    "headings": pattern("# a\n"),
    "headings, then a text": pattern("# a\n", after="\nSome text.\n"),
    "headings in a list": pattern("- # a\n"),
    "numbered headings": pattern("# a_1\n"),
    "the same heading": pattern("## same\n\nsome text here which is a little longer\n\n"),
    "short lines": pattern("a\n"),
    "list items": pattern("- a\n"),
    "table rows": pattern("|a|b|\n", "|a|b|\n|-|-|\n"),
    "a table of columns": lambda share: (
        "|" + "a|" * (chars(share) // 4) + "\n|" + "-|" * (chars(share) // 4) + "\n|x|\n"
    ),
    "a fence never closed": pattern("x y z\n", "```\n"),
    "a line in a fence": pattern("x ", "```\n", "\n```"),
    "tags never closed": pattern("<a "),
    "quotes never closed": pattern('<a "'),
    "braces never closed": pattern("<A b={"),
    "strings never closed": pattern("<A b={`"),
    "escapes in a string": lambda share: "<A b={" + "\\`" * (chars(share, TICKS)),
    "comments never closed": pattern("<!-- "),
    "mdx comments never closed": pattern("{/* "),
    "tags": pattern("<b>x</b> "),
    "open code": pattern("<pre>", "Ten characters "),
    "open code, closed once": pattern("<pre>", "Ten characters ", "</pre>"),
    "open code in lines": pattern("<pre>\n", "Ten characters ", "</pre>"),
    "components in one line": pattern('<A title="some words"/> '),
    "exports": pattern("export const a\n\n", after="Ten characters"),
    "exports never closed": pattern("export const a = {\n\n", "Ten characters\n\n"),
    "imports": pattern("import a\n\n"),
    "prose that begins with import": pattern("import is a word\n", "<b>x</b>\n"),
    "imports far below a tag": lambda share: pattern("import is a word\n", "<b>x</b>" + " " * (CHARS // 2))(share / 2),
    "maths never closed": pattern("$$a\n"),
    "formulas closed once": pattern("\\[\n" + "a" * 200 + "\n\n", after="\\]"),
    "formulas around headings": pattern("\\[\n" * 4000 + "\n# h\n\n\\]\n"),
    "admonitions": lambda share: "".join(
        "    " * depth + "!!! note\n" for depth in range(int((0.45 * chars(share)) ** 0.5))
    ),
    "full stops": pattern(". "),
    "initials": pattern("A. "),
    "han": pattern("漢字"),
    "definitions": pattern("[a]: b\n", after="\n\nTen characters"),
    "links to a definition": pattern("[a][b] [c` ", after="\n\n[b]: c"),
    "wrapped links": pattern("[a\n", after="\n\n[b]: c"),
    "rims of boxes": pattern(":::a b\n!!! c\n", after="\n\nTen characters"),
    "titles of tabs": pattern('=== "a"\n'),
    "strings in braces": pattern("{'a\\' ", after="'}"),
    "icons": pattern(":material-a"),
    "titles in titles": pattern("> [!a] > [!b] <i>"),
    "texts of a component": pattern("&lt;<b>\\n", before='<A b="c ', after='" />'),
    "underlines": pattern("a\n=\n"),
    "entities": pattern("&amp;a &lt;b "),
    "attributes": pattern("a*{.b} "),
    "attributes never closed": pattern("*{.b c=d "),
    "links to notes": pattern("[[a#b|c]] "),
    "links to notes never closed": pattern("[[a|"),
    "notes shown here": pattern("![[a]] "),
    "comments of notes": pattern("a %% "),
    "block ids": pattern("a ^b\n"),
    "callouts": pattern("> [!a] b\n"),
    "borders of boxes": pattern("/// a | b\n"),
    "listings never closed": pattern("<CodeBlock>{`a", after="\n\nTen characters"),
}
GROWTH = [
    "one paragraph of many lines",
    "growing backticks",
    "braces never closed",
    "full stops",
    "the same heading",
    "one word",
    "headings",
    "open code, closed once",
    "components in one line",
    "exports",
    "prose that begins with import",
    "formulas closed once",
    "attributes",
    "links to notes",
    "notes shown here",
]


def _measure(folder: str, queue) -> None:
    root = Path(folder)
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    book_survey = survey(root)
    longest = 0
    for lesson in book_survey.lessons:
        longest = max((chunk.char_count for chunk in read_lesson(root, lesson, book_survey.manifest).chunks), default=0)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    queue.put((time.process_time() - start, memory, longest, len(book_survey.lessons)))


def measured(root: Path, text: str) -> tuple[float, float, int, int]:
    """Seconds of CPU, MiB of memory added, the longest chunk, and how many lessons, in a process of its own."""
    root.mkdir(exist_ok=True)
    (root / "a.mdx").write_text(text)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_measure, args=(str(root), queue))
    process.start()
    process.join(MAX_WAIT_SECONDS)
    if process.is_alive():
        process.kill()
        pytest.fail(f"not read within {MAX_WAIT_SECONDS} s")
    return queue.get()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_little(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    """The largest that is not refused costs no more than a moment of a processor, under 200 MiB, and no giant chunk; a
    part of it costs its share. `make fuzz` reads the largest."""
    share = float(request.config.getoption("--hostile-share"))
    seconds, memory, longest, lessons = measured(tmp_path, HOSTILE[name](share))

    assert lessons == 1  # were it refused, this would prove nothing
    assert seconds < A_MOMENT * share
    assert memory < MEMORY * (share + 1) / 2  # some of it is there for any file
    assert 10 <= longest < 9000


@pytest.mark.parametrize("name", GROWTH)
def test_time_grows_with_size_and_not_faster(tmp_path: Path, name: str) -> None:
    """Eight times the file takes about eight times as long; were it quadratic it would take sixty-four times."""
    small = min(measured(tmp_path, HOSTILE[name](1 / 16))[0] for _ in range(3))
    large = min(measured(tmp_path, HOSTILE[name](1 / 2))[0] for _ in range(4))

    assert large < 32 * small + 0.1  # half way between the two: a busy machine does not reach it


def test_yaml_bombs_cost_nothing(tmp_path: Path) -> None:
    """The alias bomb that would be 28 MB of JSON is refused in a moment."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]

    seconds, memory, _, lessons = measured(tmp_path, "---\n" + "\n".join(lines) + "\n---\n# Text\n\nSome words here.\n")

    assert lessons == 0
    assert seconds < 0.5
    assert memory < MEMORY
