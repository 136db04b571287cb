"""Question sets in the shapes that are in use, and clear words about those that are in none."""

from pathlib import Path

import pytest

from lectern.domain.errors import BadInput, LecternError, SourceError
from lectern.evals.datasets import Excerpt, digest, load_set
from tests.conftest import SHARED_DATA
from tests.evals.making import DOCUMENTS, QUERIES, question_set, write_files


def test_a_corpus_becomes_a_book_of_one_lesson_a_document(tmp_path: Path) -> None:
    """No id becomes a path, titles become headings, and every file leads back to its document."""
    dataset = load_set(question_set(tmp_path / "qa-small"))

    [book] = dataset.books
    assert list(book.documents.values()) == [document["_id"] for document in DOCUMENTS]
    assert all(name[:-3].isdecimal() and name.endswith(".md") for name in book.files)
    assert book.files["000001.md"].startswith(b"# Bees\n\nA hive of bees")
    assert book.files["000004.md"].startswith(b"\nIce floats")
    assert {question.book_id for question in dataset.questions} == {"qa-small"}


def test_questions_without_an_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    """Unanswerable, unjudged and noisy questions are not asked, and the report can say how many they were."""
    odd = [
        {"_id": "noisy", "text": "What is glass made of?", "gold": [{"doc": "glass"}], "meta": {"noisy_gold": True}},
        {"_id": "unjudged", "text": "What is bread made of?"},
    ]

    dataset = load_set(question_set(tmp_path / "set", [*QUERIES, *odd]))

    assert [question.id for question in dataset.questions] == ["q1", "q2", "q3", "q4"]
    assert dataset.left_out == {"unanswerable": 1, "noisy gold": 1, "unjudged": 1}


def test_qrels_judge_questions_that_name_no_gold(tmp_path: Path) -> None:
    """BEIR's shape: no gold in the questions, graded rows with a head in qrels.tsv; 0 is no gold."""
    bare = [{"_id": "q1", "text": "Where does honey come from?"}, QUERIES[2]]
    folder = question_set(tmp_path / "set", bare)
    rows = "query-id\tcorpus-id\tscore\nq1\tbread\t0\nq1\tglass\t2\nq1\tice\t1\nq3\tice\t3\n"
    (folder / "qrels.tsv").write_text(rows, encoding="utf-8")

    dataset = load_set(folder)

    assert [dict(question.gold) for question in dataset.questions] == [{"glass": 2, "ice": 1}, {"bread": 1}]


def test_grades_and_spans_are_kept(tmp_path: Path) -> None:
    """`grade` says how well a document answers, `span` where; two spans in one document are one gold document."""
    gold = [{"doc": "ice", "score": 1, "grade": 4, "span": [0, 3]}, {"doc": "ice", "grade": 4, "span": [12, 19]}]
    dataset = load_set(question_set(tmp_path / "set", [{"_id": "q", "text": "What floats?", "gold": gold}]))

    [question] = dataset.questions
    assert dict(question.gold) == {"ice": 4}
    assert question.excerpts == (
        Excerpt(document="ice", start=0, end=3),
        Excerpt(document="ice", start=12, end=19),
    )


def test_books_inside_the_set(tmp_path: Path) -> None:
    """Where questions name their book and the set holds it, each book is its own, and is asked its own questions."""
    queries = [
        {
            "_id": "a",
            "text": "What is it?",
            "gold": [{"doc": "one/docs/x.md"}],
            "meta": {"book": "one", "type": "open"},
        },
        {"_id": "b", "text": "What is it?", "gold": [{"doc": "two/docs/y.md"}], "meta": {"book": "two"}},
    ]
    folder = question_set(tmp_path / "qa-two", queries, None)
    write_files(folder, {"one/docs/x.md": "# X", "two/docs/y.md": "# Y", "two/docs/_category_.json": "{}"})

    dataset = load_set(folder)

    assert [(book.book_id, dict(book.documents)) for book in dataset.books] == [
        ("one", {"docs/x.md": "one/docs/x.md"}),
        ("two", {"docs/y.md": "two/docs/y.md"}),
    ]
    assert [(question.book_id, question.kind) for question in dataset.questions] == [("one", "open"), ("two", None)]
    assert "docs/_category_.json" in dataset.books[1].files


@pytest.mark.parametrize("place", ["book-x/docs", "book-x", "qa-x", "far/away"])
def test_a_book_beside_the_set_or_named(place: str, tmp_path: Path) -> None:
    """The questions of qa-x are about book-x beside it, wherever in it the gold lies; any other folder is named. What
    holds the questions themselves, or repeats a lesson, is left out."""
    folder = question_set(tmp_path / "qa-x", [{"_id": "a", "text": "What is it?", "gold": [{"doc": "m/l.md"}]}], None)
    files = {"m/l.md": "# L", "m/l.summary.md": "# L again", "quiz.md": "<Quiz questions={[]} />", ".git/x.md": "no"}
    write_files(tmp_path / place, files)

    dataset = load_set(folder, tmp_path / place if place.startswith("far") else None)

    assert list(dataset.books[0].documents) == ["m/l.md"]


def test_the_digest_changes_with_the_content(tmp_path: Path) -> None:
    """The same content has the same digest, wherever it lies; an edited document another."""
    first_set = load_set(question_set(tmp_path / "a" / "set"))
    two = load_set(question_set(tmp_path / "b" / "set"))
    edited = [{**DOCUMENTS[0], "text": "Wasps."}, *DOCUMENTS[1:]]
    three = load_set(question_set(tmp_path / "c" / "set", documents=edited))

    assert digest(first_set.books) == digest(two.books) != digest(three.books)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("queries.jsonl", b'{"_id": "q1", "text": "What is it?"}\n{"_id": 7}\n', "queries.jsonl, line 2: _id"),
        ("queries.jsonl", b"\n{oops\n", "queries.jsonl, line 2: Invalid JSON"),
        ("queries.jsonl", b'{"_id": "q1", "text": "Is it \xff?"}\n', "queries.jsonl, line 1: byte 0xff"),
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "?", "gold": [{"doc": "ice"}]}\n',
            "line 1: text must have 3 to 1000",
        ),
        ("queries.jsonl", b'{"_id": "q1", "text": "What?", "gold": [{"doc": "n"}]}\n', "line 1: the gold document 'n'"),
        ("queries.jsonl", b'{"_id": "q1", "text": "What?", "gold": [{"span": [1, 2]}]}\n', "line 1: gold.0.doc"),
        (
            "queries.jsonl",
            b'\n{"_id": "q1", "text": "What?", "gold": [{"doc": "ice", "span": [0, 0]}]}\n',
            "queries.jsonl, line 2: gold.0.span: [0, 0]",
        ),
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "What?", "gold": [{"doc": "ice", "span": [-1, 5]}]}\n',
            "line 1: gold.0.span: [-1, 5] must be 0 <= start < end",
        ),
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "What?", "gold": [{"doc": "ice"}, {"doc": "ice", "span": [9, 5]}]}\n',
            "line 1: gold.1.span: [9, 5]",
        ),
        ("queries.jsonl", b'{"_id": "q1", "text": "What is it?"}\n', "no question with a gold document"),
        ("corpus.jsonl", b'{"_id": "ice", "text": "a"}\n{"_id": "ice", "text": "b"}\n', "line 2: _id 'ice' was used"),
        ("corpus.jsonl", b'{"_id": "ice"}\n', "corpus.jsonl, line 1: text"),
        ("qrels.tsv", b"query-id\tcorpus-id\tscore\nq1\tice\n", "qrels.tsv, line 2: there must be 3 columns"),
        ("qrels.tsv", b"q1\tice\t1\nq1\tice\tmuch\n", "qrels.tsv, line 2: the score must be a number"),
        ("qrels.tsv", b"q9\tice\t1\n", "qrels.tsv, line 1: queries.jsonl has no question 'q9'"),
    ],
)
def test_a_bad_file_is_named_with_its_line(file: str, content: bytes, says: str, tmp_path: Path) -> None:
    """Whoever wrote the set can find what to mend."""
    folder = question_set(tmp_path / "set")
    (folder / file).write_bytes(content)

    with pytest.raises(SourceError) as caught:
        load_set(folder)

    assert says in str(caught.value)


def test_a_missing_folder_or_book_is_said(tmp_path: Path) -> None:
    """No folder, no questions, no book: each has its own sentence, with what to do."""
    with pytest.raises(BadInput, match=r"there is no folder .*queries\.jsonl"):
        load_set(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"queries\.jsonl cannot be read"):
        load_set(tmp_path / "empty")
    lost = question_set(tmp_path / "qa-x", [{"_id": "a", "text": "What is it?", "gold": [{"doc": "l.md"}]}], None)
    with pytest.raises(LecternError, match="--book PATH"):
        load_set(lost)
    with pytest.raises(BadInput, match="there is no folder"):
        load_set(lost, tmp_path / "nowhere")


REAL = {  # set → questions asked, documents, books
    "qa-physai": (154, 93, 2),
    "qa-agentfactory": (768, 445, 1),
    "qa-curriculum": (774, 346, 1),
    "qa-squad2": (2168, 1204, 1),
    "qa-nq": (1331, 2600, 1),
    "qa-claudedocs": (42, 232, 1),
    "qa-cranfield": (103, 1400, 1),
    "qa-multihop-mini": (43, 629, 1),
    "qa-chunking": (213, 5, 1),
    "qa-clapnq": (167, 597, 1),
    "qa-mtragun": (159, 1152, 1),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_sets_load_whole(name: str) -> None:
    """Every set that this is made for loads as its makers describe it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared question sets are not beside this checkout")

    dataset = load_set(SHARED_DATA / name)

    counts = (len(dataset.questions), sum(len(book.documents) for book in dataset.books), len(dataset.books))
    lines = (SHARED_DATA / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    assert counts == REAL[name]
    assert len(dataset.questions) + sum(dataset.left_out.values()) == len(lines)
    assert all(question.gold for question in dataset.questions)
