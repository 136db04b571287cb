"""Files made to hurt: each is read or refused in time that grows with its size, and never in much memory."""

from __future__ import annotations

import multiprocessing
import resource
import time
from pathlib import Path

import pytest

from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey

MEBIBYTE = 1024 * 1024
A_MOMENT = 8  # seconds: each takes under one on a quiet core, and minutes if it were not linear


def pattern(unit: str):
    """A text of about this many characters made of one unit."""
    return lambda size: unit * max(1, size // len(unit))


HOSTILE = {
    "backticks": lambda size: "`" * size + "a",
    "growing backticks": lambda size: " ".join("`" * length for length in range(1, int((2 * size) ** 0.5))),
    "brackets": pattern("["),
    "links": pattern("[a]("),
    "emphasis": pattern("*a **a "),
    "emphasis in headings": lambda size: ("# " + "*a_" * 120 + "\n\ntext\n\n") * (size // 372),
    "one endless heading": lambda size: "# " + "*a_" * (size // 3),
    "spaces in a heading": lambda size: "# a" + " " * size + "b",
    "hashes in a heading": lambda size: "# a " + "#" * size + "b",
    "nested quotes": lambda size: ">" * size + " a",
    "nested lists": lambda size: "- " * (size // 2) + "a",
    "lists as stairs": lambda size: "".join("  " * depth + "- a\n" for depth in range(int(size**0.5))),
    "one line of words": pattern("ab cd "),
    "one paragraph of many lines": pattern("a line of words\n"),
    "one word": lambda size: "a" * size,
    "headings": pattern("# a\n"),
    "the same heading": pattern("## same\n\nsome text here which is a little longer\n\n"),
    "short lines": pattern("a\n"),
    "list items": pattern("- a\n"),
    "table rows": lambda size: "|a|b|\n|-|-|\n" + "|a|b|\n" * (size // 6),
    "a table of columns": lambda size: "|" + "a|" * (size // 4) + "\n|" + "-|" * (size // 4) + "\n|x|\n",
    "a fence never closed": lambda size: "```\n" + "x y z\n" * (size // 6),
    "a line in a fence": lambda size: "```\n" + "x " * (size // 2) + "\n```",
    "tags never closed": pattern("<a "),
    "quotes never closed": pattern('<a "'),
    "braces never closed": pattern("<A b={"),
    "strings never closed": pattern("<A b={`"),
    "escapes in a string": lambda size: "<A b={" + "\\`" * (size // 2),
    "comments never closed": pattern("<!-- "),
    "mdx comments never closed": pattern("{/* "),
    "tags": pattern("<b>x</b> "),
    "exports never closed": pattern("export const a = {\n\n"),
    "imports": pattern("import a\n\n"),
    "maths never closed": pattern("$$a\n"),
    "admonitions": lambda size: "".join("    " * depth + "!!! note\n" for depth in range(int((size / 2) ** 0.5))),
    "full stops": pattern(". "),
    "initials": pattern("A. "),
    "han": pattern("漢字"),
    "definitions": pattern("[a]: b\n"),
    "underlines": pattern("a\n=\n"),
}


def _measure(folder: str, queue) -> None:
    root = Path(folder)
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = survey(root)
    longest = 0
    for lesson in found.lessons:
        longest = max((chunk.char_count for chunk in read_lesson(root, lesson, found.manifest).chunks), default=0)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    queue.put((time.process_time() - start, memory, longest, len(found.lessons) + len(found.problems)))


def measured(root: Path, text: str) -> tuple[float, float, int, int]:
    """Seconds of CPU, MiB of memory added, the longest chunk, and what the file became, in a process of its own."""
    root.mkdir(exist_ok=True)
    (root / "a.mdx").write_text(text)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_measure, args=(str(root), queue))
    process.start()
    process.join(30)
    if process.is_alive():
        process.kill()
        pytest.fail("not read within 30 s")
    return queue.get()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_little(tmp_path: Path, name: str) -> None:
    """Half a mebibyte costs no more than a moment of a processor, under 200 MiB, and no chunk that is enormous."""
    seconds, memory, longest, outcomes = measured(tmp_path, HOSTILE[name](MEBIBYTE // 2))

    assert outcomes
    assert seconds < A_MOMENT
    assert memory < 200
    assert longest < 9000


@pytest.mark.parametrize(
    "name",
    [
        "one paragraph of many lines",
        "growing backticks",
        "braces never closed",
        "full stops",
        "the same heading",
        "one word",
    ],
)
def test_time_grows_with_size_and_not_faster(tmp_path: Path, name: str) -> None:
    """Eight times the file takes about eight times as long; were it quadratic it would take sixty-four times."""
    small = min(measured(tmp_path, HOSTILE[name](MEBIBYTE // 16))[0] for _ in range(3))
    large = min(measured(tmp_path, HOSTILE[name](MEBIBYTE // 2))[0] for _ in range(3))

    assert large < 32 * small + 0.1  # half way between the two: a busy machine does not reach it


def test_yaml_bombs_cost_nothing(tmp_path: Path) -> None:
    """The alias bomb that would be 28 MB of JSON is refused in a moment."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]

    seconds, memory, _, outcomes = measured(
        tmp_path, "---\n" + "\n".join(lines) + "\n---\n# Text\n\nSome words here.\n"
    )

    assert outcomes == 1
    assert seconds < 0.5
    assert memory < 200
