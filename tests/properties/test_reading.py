"""The reader's invariants on random books: whatever an author writes, ids are unique, chains whole, words kept, fences
balanced, counts and lines true; and whatever bytes come along, nothing crashes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lectern.domain.books import Survey
from lectern.domain.chunks import Chunk, chunk_id, parent_doc_id
from lectern.domain.errors import BookNotFound
from lectern.reading.blocks import read_body
from lectern.reading.chunking import DEFAULT_RULES, ReadingRules
from lectern.reading.files import excluded
from lectern.reading.frontmatter import open_front_matter
from lectern.reading.lessons import read_lesson
from lectern.reading.names import slugged
from lectern.reading.problems import Unreadable
from lectern.reading.survey import survey
from tests.unit.reading.test_books import fences_left_open

SMALL = ReadingRules(target_tokens=40, short_tokens=12, max_chars=400)
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@contextmanager
def folder() -> Iterator[Path]:
    """A fresh folder for one example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def read_all(root: Path, rules: ReadingRules) -> tuple[Survey, dict[str, tuple[Chunk, ...]]]:
    """A folder's survey and chunks by file."""
    book_survey = survey(root, book_id="book", rules=rules)
    return book_survey, {
        lesson.source_file: read_lesson(root, lesson, book_survey.manifest, rules).chunks
        for lesson in book_survey.lessons
    }


# ------------------------------------------------------------------------------------------------------ random lessons
# Blocks are templates: W is a word that a reader sees, G one that nobody does. Each becomes unique when written.

words = st.integers(1, 60).map(lambda count: " ".join(["W"] * count))
sentences = st.integers(1, 12).map(lambda count: " ".join(["W W W W W W."] * count))
code = st.lists(
    st.sampled_from(["W = W(W)", "# W", "<W>W</W>", "    W W", "", "- W", "| W |", "import W", "$$ W"]), max_size=40
)
leaves = st.one_of(
    words,
    sentences,
    st.integers(1, 12).map(lambda count: "\n".join(["W W W W W W W."] * count) + " W."),
    st.tuples(st.integers(1, 6), words.filter(lambda text: len(text) < 30)).map(
        lambda part: "#" * part[0] + " " + part[1]
    ),
    st.sampled_from(
        ["W W\n===", "W\n---", "***", "[G]: https://example.org", "![W](x.png)", "W `W <W>` W", "W **W** [W](x)"]
    ),
    st.tuples(st.sampled_from(["```", "~~~", "````"]), st.sampled_from(["", "py", 'js title="x"']), code).map(
        lambda part: f"{part[0]}{part[1]}\n" + "\n".join(part[2]) + f"\n{part[0]}"
    ),
    st.integers(1, 40).map(lambda rows: "| W | W |\n|---|---|\n" + "\n".join(["| W | W W |"] * rows)),
    st.integers(1, 20).map(lambda rows: "$$\n" + "\n".join(["W = W + W"] * rows) + "\n$$"),
    st.lists(st.sampled_from(["- W W", "- W\n\n  W W", "  - W W", "1. W", "- [ ] W"]), min_size=1, max_size=12).map(
        "\n".join
    ),
    st.sampled_from(
        ["> W W\n> W", "> ```\n> W\n> ```", "- ```py\n  W\n  ```", ":::tip[W]\n\nW W\n\n:::", '!!! note "W"\n\n    W W']
    ),
    st.sampled_from(
        ["<!-- G -->", "{/* G\n\nG */}", '<Gap a="G" b={[G, {c: 1}]}>\n\nW W\n\n</Gap>', "<div>W</div>", "W<br/>W"]
    ),
)
lessons = st.lists(leaves, min_size=1, max_size=14).map("\n\n".join)
front_matter = st.sampled_from(
    ["", "---\ntitle: A title\n---\n", "---\nlayer: L2\nlesson: 3\n---\n\n", "---\na: b: c\n---\n"]
)
names = st.sampled_from(
    [
        "README.md",
        "01-a.md",
        "02-b.mdx",
        "intro.md",
        "m/README.md",
        "m/1-c/01-a.md",
        "m/1-c/01-b.md",
        "m/1-c/deep/er/x.md",
        "m/chapter-7.md",
        "docs/n/2-d/index.md",
        "docs/n/2-d/n.md",
        "Über uns/a b.md",
        "n.md",
        "docs/n/2-d/lesson-1/README.md",
    ]
)


def told_apart(template: str, prefix: str) -> str:
    """Every W and G becomes its own word."""
    count = iter(range(100_000))
    return re.sub(r"\b[WG]\b", lambda mark: f"{'seen' if mark[0] == 'W' else 'gone'}{prefix}x{next(count)}", template)


books = st.dictionaries(names, st.tuples(front_matter, lessons), min_size=1, max_size=6).map(
    lambda book: {name: told_apart(front + body, str(at)) for at, (name, (front, body)) in enumerate(book.items())}
)


def write(root: Path, book: dict[str, str]) -> None:
    """A book on disk."""
    for name, text in book.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@RELAXED
@given(book=books, rules=st.sampled_from([SMALL, DEFAULT_RULES]))
def test_identity_and_chain(book: dict[str, str], rules: ReadingRules) -> None:
    """Ids are the design's, deterministic, unique; a lesson's chunks are one chain under one parent, and no other's."""
    with folder() as root:
        write(root, book)
        book_survey, chunks = read_all(root, rules)
        again = read_all(root, rules)

    assert (book_survey, chunks) == again
    everything = [chunk for lesson in chunks.values() for chunk in lesson]
    assert len({chunk.id for chunk in everything}) == len(everything)
    assert len({lesson[0].parent_doc_id for lesson in chunks.values() if lesson}) == sum(map(bool, chunks.values()))
    for source in book_survey.lessons:
        line_counts: dict[str, int] = {}
        lesson = chunks[source.source_file]
        for index, chunk in enumerate(lesson):
            line_counts[chunk.content_hash] = line_counts.get(chunk.content_hash, 0) + 1
            assert chunk.id == chunk_id(source.place, chunk.content_hash, line_counts[chunk.content_hash])
            assert chunk.parent_doc_id == parent_doc_id(source.place)
            assert (chunk.chunk_index, chunk.total_chunks) == (index, len(lesson))
            assert chunk.prev_chunk_id == (lesson[index - 1].id if index else None)
            assert chunk.next_chunk_id == (lesson[index + 1].id if index + 1 < len(lesson) else None)


@RELAXED
@given(book=books, rules=st.sampled_from([SMALL, DEFAULT_RULES]))
def test_words_lines_and_counts(book: dict[str, str], rules: ReadingRules) -> None:
    """Every word that a reader sees is in a chunk whose lines hold it, in order; what nobody sees is in none."""
    with folder() as root:
        write(root, book)
        book_survey, chunks = read_all(root, rules)

    assert book_survey.files_discovered == len(book)
    for file, lesson in chunks.items():
        lines = book[file].split("\n")
        home = {word: number for number, line in enumerate(lines, 1) for word in re.findall(r"\bseen\d+x\d+", line)}
        placed: set[str] = set()
        for chunk in lesson:
            assert chunk.text == chunk.text.strip()
            assert len(chunk.text) >= rules.min_chars
            assert "gone" not in chunk.text
            assert (chunk.word_count, chunk.char_count) == (len(chunk.text.split()), len(chunk.text))
            assert chunk.token_count == round(chunk.word_count * 1.3)
            assert not fences_left_open(chunk.text)
            assert 1 <= chunk.line_start <= chunk.line_end <= len(lines)
            inside = set(re.findall(r"\bseen\d+x\d+", chunk.text))
            strangers = {word for word in inside if not chunk.line_start <= home[word] <= chunk.line_end}
            assert not strangers or _repeats_a_header(chunk, strangers)
            placed |= inside
        if lesson:
            body = open_front_matter(file, book[file], 65536).body_line
            assert placed == {word for word, line in home.items() if line > body}


def _repeats_a_header(chunk: Chunk, strangers: set[str]) -> bool:
    """Words from other lines are allowed only in a table's header that was repeated for a reader."""
    header, dashes = ([*chunk.text.split("\n"), "", ""])[:2]
    return dashes == "|---|---|" and all(word in header for word in strangers)


@RELAXED
@given(book=books)
def test_sizes(book: dict[str, str]) -> None:
    """No chunk is far beyond the target, and no section's chunk is above it without need."""
    with folder() as root:
        write(root, book)
        _, chunks = read_all(root, SMALL)

    for chunk in (chunk for lesson in chunks.values() for chunk in lesson):
        assert chunk.char_count <= 3 * SMALL.max_chars
        assert chunk.token_count <= 3.5 * SMALL.target_tokens


# ------------------------------------------------------------------------------------------------------- hostile texts

marks = st.text(alphabet="`~<>{}[]()#*_-=|$\\!:\"'/ \n\tab1\u3042\ufeff\u2028\x0b\x0c\x1c&;.,", max_size=400)


@RELAXED
@given(
    raw=st.one_of(
        st.binary(max_size=300),
        marks.map(str.encode),
        st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace")),
    )
)
@example(raw=b"---\n---\n")
@example(raw=b"```\n")
@example(raw=b"<!--")
@example(raw=b"# \n\n# \n")
@example(raw="\u2028\u2028 ten characters at least \x0c".encode())
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    """Any file is a lesson with sound chunks, or an error that says why."""
    with folder() as root:
        (root / "a.mdx").write_bytes(raw)
        try:
            book_survey, chunks = read_all(root, SMALL)
        except BookNotFound:
            raise AssertionError("the file was not discovered") from None

    assert (
        len(book_survey.lessons) + len([problem for problem in book_survey.problems if problem.severity == "error"])
        >= 1
    )
    for lesson in chunks.values():
        for chunk in lesson:
            assert len(chunk.text) >= 10
            assert chunk.text == chunk.text.strip()
            assert not fences_left_open(chunk.text)
            assert chunk.line_start <= chunk.line_end


@given(text=marks, mdx=st.booleans())
def test_cleaning_keeps_every_line(text: str, mdx: bool) -> None:
    """Whatever is taken out, lines keep their numbers, and every one with words is in exactly one block."""
    body = read_body(text, mdx=mdx)

    assert len(body.lines) == len(text.split("\n"))
    covered = [line for block in body.blocks for line in range(block.start, block.end)]
    assert len(covered) == len(set(covered))
    assert {line for line, line_text in enumerate(body.lines) if line_text.strip()} <= set(covered)
    assert [block.start for block in body.blocks] == sorted(block.start for block in body.blocks)


@given(yaml=st.one_of(st.text(max_size=300), st.text(alphabet="ab:-[]{}&*!?|>'\"#% \n\t", max_size=300)))
def test_no_front_matter_crashes(yaml: str) -> None:
    """It is taken, reported or refused."""
    text = f"---\n{yaml}\n---\n# Text\n"
    try:
        opened = open_front_matter("a.md", text, 65536)
    except Unreadable:
        return

    assert 0 <= opened.body_line <= text.count("\n")


@given(name=st.text(max_size=200))
def test_slugs(name: str) -> None:
    """Never empty, never long, never a colon, and a slug of a slug is itself."""
    slug = slugged(name)

    assert 1 <= len(slug) <= 64
    assert all(char == "-" or char.isdecimal() or (char.isalpha() and not char.isupper()) for char in slug)
    assert slugged(slug) == slug


@given(path=st.lists(st.text("ab*", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join))
def test_a_path_excludes_itself_and_all_below(path: str) -> None:
    """A pattern without wildcards is the path it names."""
    plain = path.replace("*", "a")

    assert excluded(plain, plain)
    assert excluded(f"{plain}/x.md", plain)
    assert excluded(plain, "**")
