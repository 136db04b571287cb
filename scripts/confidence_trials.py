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
class Asked:
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
    asked: Sequence[Asked]
    small: bool = False
    fitted: bool = True
    doubtful: frozenset[str] = field(default_factory=lambda: frozenset({"near", "unanswerable"}))  # never fitted on


def read_lines(file: Path) -> list[Line]:
    """The questions of a set."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def trials(data: Path) -> list[Trial]:
    """Every book, whole ones first."""
    others = _others(data)
    robolearn, handbook, curriculum = _robotics(data, others)
    squad = _squad(data, others)
    return [*robolearn, *handbook, *curriculum, *squad, *_golden(others)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    far: list[Asked]
    foreign_far: list[Asked]  # less those that are about squad2's own articles
    mid: list[Asked]
    articles: list[Asked]
    lines: list[Line]


def _others(data: Path) -> _Others:
    lines = read_lines(data / "qa-refusal-robolearn" / "queries.jsonl")
    squad = [line for line in read_lines(data / "qa-squad2" / "queries.jsonl") if line["answerable"]]
    known = {line["text"]: line["answers"] for line in read_lines(data / "qa-nq" / "queries.jsonl")}
    far = [{**line, "answers": known.get(line["text"], ())} for line in lines if line["tier"] == "far"]
    return _Others(
        far=_uncovered(far, "far"),
        foreign_far=_uncovered([line for line in far if "-nq-" in line["_id"]], "far"),
        mid=_uncovered([line for line in lines if line["tier"] == "mid"], "mid"),
        articles=_uncovered(random.Random(SEED).sample(squad, SAMPLE), "articles"),
        lines=lines,
    )


def _uncovered(lines: Iterable[Line], tier: str) -> list[Asked]:
    return [Asked(text=line["text"], covered=False, tier=tier, answers=_answers(line, tier)) for line in lines]


def _answers(line: Line, tier: str) -> tuple[str, ...]:
    """Only `far` questions bring theirs: they come from a search engine, and no one has read every book for them."""
    return tuple(line["answers"]) if tier == "far" else ()


def _covered(lines: Iterable[Line], strip: str = "") -> list[Asked]:
    return [
        Asked(
            text=line["text"],
            covered=True,
            tier="in-book",
            gold=frozenset(gold["doc"].removeprefix(strip) for gold in line["gold"]),
        )
        for line in lines
    ]


def _robotics(data: Path, others: _Others) -> tuple[list[Trial], list[Trial], list[Trial]]:
    """Robolearn twice: without its own exercises, to fit on, and as it is, to report on."""
    physai = read_lines(data / "qa-physai" / "queries.jsonl")
    outside = [*others.far, *others.mid, *others.articles]
    near = _uncovered([line for line in others.lines if line["tier"] == "near"], "near")
    made = []
    for name in ("robolearn", "handbook"):
        files = book_of_folder(name, data / "qa-physai" / name).files
        own = _covered([line for line in physai if line["meta"]["book"] == name], f"{name}/")
        asked = [*own, *outside, *(near if name == "robolearn" else [])]
        made.append([Trial(name=name, book=name, files=files, asked=asked), *_parts(name, files, own, outside, 1)])
    whole = book_of_folder("robolearn", data / "book-robolearn" / "docs").files
    made[0].append(Trial(name="robolearn-whole", book="robolearn", files=whole, asked=made[0][0].asked, fitted=False))
    files = book_of_folder("curriculum", data / "book-curriculum" / "modules").files
    own = _covered(read_lines(data / "qa-curriculum" / "queries.jsonl"))
    parts = _parts("curriculum", files, own, outside, 6)
    made.append([Trial(name="curriculum", book="curriculum", files=files, asked=[*own, *outside]), *parts])
    return made[0], made[1], made[2]


def _parts(
    name: str, files: Mapping[str, bytes], own: Sequence[Asked], outside: Sequence[Asked], every: int
) -> list[Trial]:
    """Five files each, wherever two questions or more are about them; of those every so-many-th."""
    lessons = [path for path in sorted(files) if path.lower().endswith((".md", ".mdx"))]
    groups = [lessons[begin : begin + SMALL] for begin in range(0, len(lessons), SMALL)]
    asked = [[one for one in own if one.gold & set(group)] for group in groups]
    chosen = [(group, ones) for group, ones in zip(groups, asked, strict=True) if len(ones) > 1][every - 1 :: every]
    return [
        Trial(
            name=f"{name}-part-{number}",
            book=name,
            files={path: files[path] for path in group},
            asked=[*ones, *random.Random(number).sample(outside, 90)],
            small=True,
        )
        for number, (group, ones) in enumerate(chosen, start=1)
    ]


def _squad(data: Path, others: _Others) -> list[Trial]:
    """Every second article is a book, as `lectern eval refusal --half` has it, and the rest another; small books are
    single articles."""
    lines = read_lines(data / "qa-squad2" / "queries.jsonl")
    documents = list(read_corpus(data / "qa-squad2").values())
    article = {document.id: document.title for document in documents}
    articles = sorted(set(article.values()))
    inside = set(articles[::2])

    def trial(name: str, chosen: set[str], asked: list[Asked], *, small: bool) -> Trial:
        book = book_of_documents(name, [one for one in documents if article[one.id] in chosen])
        files = {document: file for file, document in book.documents.items()}
        named = [replace(one, gold=frozenset(files.get(gold, "") for gold in one.gold)) for one in asked]
        return Trial(name=name, book="squad2", files=book.files, asked=named, small=small)

    def about(chosen: set[str], *, answerable: bool = True) -> list[Line]:
        return [
            line for line in lines if line["answerable"] == answerable and article[line["gold"][0]["doc"]] in chosen
        ]

    made = []
    for name, chosen in (("squad2", inside), ("squad2-rest", set(articles) - inside)):
        rest = set(articles) - chosen
        asked = [*_covered(about(chosen)), *_uncovered(about(rest), "uncovered"), *others.foreign_far, *others.mid]
        asked += _uncovered(about(chosen, answerable=False), "unanswerable")
        made.append(trial(name, chosen, asked, small=False))
    for number, one in enumerate(articles[::4], start=1):
        draw = random.Random(number)
        own, foreign = _covered(about({one})), _uncovered(about(set(articles) - {one}), "uncovered")
        some = [*draw.sample(own, min(30, len(own))), *draw.sample(foreign, 60), *draw.sample(others.mid, 30)]
        made.append(trial(f"squad2-part-{number}", {one}, some, small=True))
    return made


def _golden(others: _Others) -> list[Trial]:
    """The sample book, whole and five files at a time; nothing is fitted on it. Follow-ups are asked standalone."""
    lines = read_lines(GOLDEN)
    files = book_of_folder("sample", SAMPLE_BOOK).files
    own = [
        Asked(
            text=line["meta"].get("standalone") or line["text"],
            covered=line["answerable"],
            tier=line["meta"]["type"],
            gold=frozenset(gold["doc"] for gold in line["gold"]),
        )
        for line in lines
    ]
    whole = Trial(name="sample", book="sample", files=files, asked=[*own, *others.far, *others.mid], fitted=False)
    lessons = [path for path in sorted(files) if path.lower().endswith((".md", ".mdx"))]
    made = [whole]
    for number, begin in enumerate(range(0, len(lessons), SMALL), start=1):
        group = {path: files[path] for path in lessons[begin : begin + SMALL]}
        asked = [one for one in own if not one.covered or one.gold & group.keys()]
        asked += [*others.far, *others.mid]
        made.append(
            Trial(name=f"sample-part-{number}", book="sample", files=group, asked=asked, small=True, fitted=False)
        )
    return made
