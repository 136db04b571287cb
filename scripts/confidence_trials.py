"""The books and questions that confidence is fitted on: four whole books, and small parts of the same books, because
somebody's book may have five pages. What counts as uncovered is of another subject for sure: questions about Wikipedia
articles and from a search engine (`far`), about programming and machine learning systems (`mid`), and for squad2, half
of whose articles are a book, those about the other half. Robotics books are never asked each other's questions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lectern.evals.datasets import book_of_documents, book_of_folder
from lectern.evals.goldfiles import read_corpus

SEED = 7
SMALL = 5  # files of a small book
SAMPLE = 300  # questions about Wikipedia articles that every robotics book is asked
GOLDEN = Path("examples/golden/physical-ai-robotics/queries.jsonl")
SAMPLE_BOOK = Path("examples/physical-ai-robotics")

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuestion:
    """A question and where its answer stands."""

    text: str
    covered: bool
    tier: str
    gold: frozenset[str] = frozenset()  # source files
    answers: tuple[str, ...] = ()  # of an uncovered question, where its own set knows them


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A book and what it is asked."""

    name: str
    book: str  # the book it is, or is a part of
    files: Mapping[str, bytes]
    questions: Sequence[TrialQuestion]
    small: bool = False
    fitted: bool = True
    doubtful: frozenset[str] = field(default_factory=lambda: frozenset({"near", "unanswerable"}))  # never fitted on


def read_lines(file: Path) -> list[Line]:
    """The questions of a set."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def trials(data: Path) -> list[Trial]:
    """Every book, whole ones first."""
    foreign_questions = _foreign_questions(data)
    robolearn, handbook, curriculum = _robotics(data, foreign_questions)
    squad = _squad(data, foreign_questions)
    return [*robolearn, *handbook, *curriculum, *squad, *_golden(foreign_questions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForeignQuestions:
    far: list[TrialQuestion]
    foreign_far: list[TrialQuestion]  # less those that are about squad2's own articles
    mid: list[TrialQuestion]
    articles: list[TrialQuestion]
    lines: list[Line]


def _foreign_questions(data: Path) -> _ForeignQuestions:
    lines = read_lines(data / "qa-refusal-robolearn" / "queries.jsonl")
    squad = [line for line in read_lines(data / "qa-squad2" / "queries.jsonl") if line["answerable"]]
    answers_by_text = {line["text"]: line["answers"] for line in read_lines(data / "qa-nq" / "queries.jsonl")}
    far = [{**line, "answers": answers_by_text.get(line["text"], ())} for line in lines if line["tier"] == "far"]
    return _ForeignQuestions(
        far=_uncovered(far, "far"),
        foreign_far=_uncovered([line for line in far if "-nq-" in line["_id"]], "far"),
        mid=_uncovered([line for line in lines if line["tier"] == "mid"], "mid"),
        articles=_uncovered(random.Random(SEED).sample(squad, SAMPLE), "articles"),
        lines=lines,
    )


def _uncovered(lines: Iterable[Line], tier: str) -> list[TrialQuestion]:
    return [TrialQuestion(text=line["text"], covered=False, tier=tier, answers=_answers(line, tier)) for line in lines]


def _answers(line: Line, tier: str) -> tuple[str, ...]:
    """Only `far` questions bring theirs: they come from a search engine, and no one has read every book for them."""
    return tuple(line["answers"]) if tier == "far" else ()


def _covered(lines: Iterable[Line], strip: str = "") -> list[TrialQuestion]:
    return [
        TrialQuestion(
            text=line["text"],
            covered=True,
            tier="in-book",
            gold=frozenset(gold["doc"].removeprefix(strip) for gold in line["gold"]),
        )
        for line in lines
    ]


def _robotics(data: Path, foreign_questions: _ForeignQuestions) -> tuple[list[Trial], list[Trial], list[Trial]]:
    """Robolearn twice: without its own exercises, to fit on, and as it is, to report on."""
    physai = read_lines(data / "qa-physai" / "queries.jsonl")
    outside = [*foreign_questions.far, *foreign_questions.mid, *foreign_questions.articles]
    near = _uncovered([line for line in foreign_questions.lines if line["tier"] == "near"], "near")
    trials = []
    for name in ("robolearn", "handbook"):
        files = book_of_folder(name, data / "qa-physai" / name).files
        covered_questions = _covered([line for line in physai if line["meta"]["book"] == name], f"{name}/")
        questions = [*covered_questions, *outside, *(near if name == "robolearn" else [])]
        trials.append(
            [
                Trial(name=name, book=name, files=files, questions=questions),
                *_parts(name, files, covered_questions, outside, 1),
            ]
        )
    whole = book_of_folder("robolearn", data / "book-robolearn" / "docs").files
    trials[0].append(
        Trial(name="robolearn-whole", book="robolearn", files=whole, questions=trials[0][0].questions, fitted=False)
    )
    files = book_of_folder("curriculum", data / "book-curriculum" / "modules").files
    covered_questions = _covered(read_lines(data / "qa-curriculum" / "queries.jsonl"))
    parts = _parts("curriculum", files, covered_questions, outside, 6)
    trials.append(
        [Trial(name="curriculum", book="curriculum", files=files, questions=[*covered_questions, *outside]), *parts]
    )
    return trials[0], trials[1], trials[2]


def _parts(
    name: str,
    files: Mapping[str, bytes],
    covered_questions: Sequence[TrialQuestion],
    outside: Sequence[TrialQuestion],
    step: int,
) -> list[Trial]:
    """Five files each, wherever two questions or more are about them; of those every so-many-th."""
    lessons = [path for path in sorted(files) if path.lower().endswith((".md", ".mdx"))]
    groups = [lessons[begin : begin + SMALL] for begin in range(0, len(lessons), SMALL)]
    questions_by_group = [
        [question for question in covered_questions if question.gold & set(group)] for group in groups
    ]
    chosen_groups = [
        (group, group_questions)
        for group, group_questions in zip(groups, questions_by_group, strict=True)
        if len(group_questions) > 1
    ][step - 1 :: step]
    return [
        Trial(
            name=f"{name}-part-{number}",
            book=name,
            files={path: files[path] for path in group},
            questions=[*group_questions, *random.Random(number).sample(outside, 90)],
            small=True,
        )
        for number, (group, group_questions) in enumerate(chosen_groups, start=1)
    ]


def _squad(data: Path, foreign_questions: _ForeignQuestions) -> list[Trial]:
    """Every second article is a book, as `lectern eval refusal --half` has it, and the rest another; small books are
    single articles."""
    lines = read_lines(data / "qa-squad2" / "queries.jsonl")
    documents = list(read_corpus(data / "qa-squad2").values())
    article = {document.id: document.title for document in documents}
    articles = sorted(set(article.values()))
    inside = set(articles[::2])

    def trial(name: str, article_names: set[str], questions: list[TrialQuestion], *, small: bool) -> Trial:
        book = book_of_documents(name, [document for document in documents if article[document.id] in article_names])
        files = {document: file for file, document in book.documents.items()}
        renamed_questions = [
            replace(question, gold=frozenset(files.get(gold, "") for gold in question.gold)) for question in questions
        ]
        return Trial(name=name, book="squad2", files=book.files, questions=renamed_questions, small=small)

    def about(article_names: set[str], *, answerable: bool = True) -> list[Line]:
        return [
            line
            for line in lines
            if line["answerable"] == answerable and article[line["gold"][0]["doc"]] in article_names
        ]

    trials = []
    for name, article_names in (("squad2", inside), ("squad2-rest", set(articles) - inside)):
        rest = set(articles) - article_names
        questions = [
            *_covered(about(article_names)),
            *_uncovered(about(rest), "uncovered"),
            *foreign_questions.foreign_far,
            *foreign_questions.mid,
        ]
        questions += _uncovered(about(article_names, answerable=False), "unanswerable")
        trials.append(trial(name, article_names, questions, small=False))
    for number, article_name in enumerate(articles[::4], start=1):
        draw = random.Random(number)
        covered_questions, foreign = (
            _covered(about({article_name})),
            _uncovered(about(set(articles) - {article_name}), "uncovered"),
        )
        sample = [
            *draw.sample(covered_questions, min(30, len(covered_questions))),
            *draw.sample(foreign, 60),
            *draw.sample(foreign_questions.mid, 30),
        ]
        trials.append(trial(f"squad2-part-{number}", {article_name}, sample, small=True))
    return trials


def _golden(foreign_questions: _ForeignQuestions) -> list[Trial]:
    """The sample book, whole and five files at a time; nothing is fitted on it. Follow-ups are asked standalone."""
    lines = read_lines(GOLDEN)
    files = book_of_folder("sample", SAMPLE_BOOK).files
    golden_questions = [
        TrialQuestion(
            text=line["meta"].get("standalone") or line["text"],
            covered=line["answerable"],
            tier=line["meta"]["type"],
            gold=frozenset(gold["doc"] for gold in line["gold"]),
        )
        for line in lines
    ]
    whole = Trial(
        name="sample",
        book="sample",
        files=files,
        questions=[*golden_questions, *foreign_questions.far, *foreign_questions.mid],
        fitted=False,
    )
    lessons = [path for path in sorted(files) if path.lower().endswith((".md", ".mdx"))]
    trials = [whole]
    for number, begin in enumerate(range(0, len(lessons), SMALL), start=1):
        group = {path: files[path] for path in lessons[begin : begin + SMALL]}
        questions = [question for question in golden_questions if not question.covered or question.gold & group.keys()]
        questions += [*foreign_questions.far, *foreign_questions.mid]
        trials.append(
            Trial(
                name=f"sample-part-{number}", book="sample", files=group, questions=questions, small=True, fitted=False
            )
        )
    return trials
