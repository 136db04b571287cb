"""Measures what becomes of answers that a language model writes: whether they arrive as they were written, and what the
verdicts on their claims are worth. Each answer is faithful to its passages; each of its twins has one claim that was
replaced by a false one. Answers go through the same code as in a turn, in small pieces, as a stream would bring them.

A file has one JSON object a line: `answer`, its `passages` (each a `text`, or a `doc` with `lines` below the book's
folder, and its `trail` of headings), and `twins` with `original`, `false` and `kind`."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from lectern.answering.checking import Checking, FinishedText, finish, level_cap
from lectern.answering.confidential import Confidential
from lectern.answering.draft import Draft
from lectern.answering.instructions import INSTRUCTIONS, NOT_COVERED
from lectern.domain.chunks import Chunk, ChunkId, ParentId, content_hash
from lectern.domain.errors import SourceError
from lectern.domain.evidence import Hit
from lectern.domain.replies import Removals, Verdict
from lectern.evals.goldfiles import line_error
from lectern.evals.grounding import auroc
from lectern.grounding.judge import word_coverage
from lectern.ports.answering import Judge
from lectern.text.markers import renumbered, without_markers

SEED = 1
MAX_PIECE = 12  # characters that come at once
VERDICTS: tuple[Verdict, ...] = ("supported", "unconfirmed", "doubtful")


class PassageLine(BaseModel):
    """A passage that the model was given."""

    trail: list[str] = []
    text: str = ""
    doc: str = ""
    lines: tuple[int, int] = (0, 0)  # first and last, from 1


class TwinLine(BaseModel):
    """A claim of the answer and the false one that replaces it."""

    kind: str
    original: str
    false: str


class AnswerLine(BaseModel):
    """A faithful answer with its false twins."""

    question: str = ""
    answer: str
    passages: list[PassageLine]
    twins: list[TwinLine] = []


@dataclass(slots=True)
class Tally:
    """The counts of a run."""

    answers: int = 0
    intact: int = 0
    refused: int = 0
    corrected: int = 0
    true: Counter[Verdict] = field(default_factory=Counter)
    false: dict[str, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))
    scores: list[tuple[float, float, bool]] = field(default_factory=list)  # support, word coverage, whether true


def load_answers(path: Path, book: Path | None = None) -> list[AnswerLine]:
    """Read a file of answers; `book` is the folder that passages are looked up in."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{path} cannot be read ({exc}); a set of answers is a file of JSON lines") from exc
    answers = []
    for number, line in enumerate(lines, start=1):
        try:
            answer = AnswerLine.model_validate_json(line)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            raise line_error(path, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        for passage in answer.passages:
            passage.text = passage.text or _looked_up(passage, book, path, number)
        answers.append(answer)
    return answers


def _looked_up(passage: PassageLine, book: Path | None, path: Path, number: int) -> str:
    if book is None or not (book / passage.doc).is_file():
        raise line_error(path, number, f"the passage in {passage.doc!r} is not there; name the book's folder (--docs)")
    first, last = passage.lines
    return "\n".join((book / passage.doc).read_text(encoding="utf-8").split("\n")[first - 1 : last])


async def measure_answers(answers: Sequence[AnswerLine], judge: Judge) -> Tally:
    """Run all answers and their twins."""
    tally = Tally()
    for answer in answers:
        hits = {number: _hit(number, passage) for number, passage in enumerate(answer.passages, start=1)}
        checking = await _checked(answer, answer.answer, hits, judge)
        finished = finish(checking, hide_doubtful=False)
        tally.answers += 1
        tally.intact += _is_intact(answer.answer, finished)
        tally.refused += _is_withdrawn(checking) or not finished.citations
        tally.corrected += finished.corrected
        for checked in checking.claims:
            tally.true[checked.judgement.verdict] += 1
            tally.scores.append(
                _score(checked.judgement.support, checked.claim.text, hits, checked.passages, true=True)
            )
        texts = {checked.claim.text for checked in checking.claims}
        for twin in answer.twins:
            checking = await _checked(answer, answer.answer.replace(twin.original, twin.false, 1), hits, judge)
            claims = [checked for checked in checking.claims if checked.claim.text not in texts]
            if not claims:  # what was changed is no claim, such as a lead
                continue
            worst = min(claims, key=lambda checked: VERDICTS[::-1].index(checked.judgement.verdict))
            tally.false[twin.kind][worst.judgement.verdict] += 1
            tally.scores.append(_score(worst.judgement.support, worst.claim.text, hits, worst.passages, true=False))
    return tally


async def _checked(answer: AnswerLine, text: str, hits: dict[int, Hit], judge: Judge) -> Checking:
    """The check of a draft."""
    draft = Draft(
        passages=lambda: tuple(hits.values()),
        passage=hits.get,
        confidential=Confidential([INSTRUCTIONS], [], signs=[NOT_COVERED]),
        question=answer.question,
    )
    sizes = random.Random(SEED)  # noqa: S311  # no secret
    place = 0
    while place < len(text):
        end = place + sizes.randint(1, MAX_PIECE)
        draft.feed(text[place:end])
        place = end
    draft.finish()
    finished, _ = draft.finished_text([hits[number] for number in draft.numbers])
    checking = Checking(
        text=finished, reader_numbers=draft.numbers, passages=hits, judge=judge, question=answer.question
    )
    async for _ in checking.run(None):
        pass
    return checking


def _is_withdrawn(checking: Checking) -> bool:
    return level_cap(checking.claims, Removals(), is_cited=bool(checking.reader_numbers)) == "insufficient"


def _is_intact(answer: str, finished: FinishedText) -> bool:
    """Whether the reply is the answer as it was written. Markers are numbered by first mention, and some corrected."""
    if finished.corrected:
        return without_markers(finished.text) == without_markers(answer)
    return finished.text == _as_shown(answer)


def _as_shown(answer: str) -> str:
    """The answer with its markers numbered by first mention."""
    numbers: dict[int, int] = {}
    lines = (_renumbered_line(line, numbers) for line in answer.strip().split("\n"))
    return "\n".join(lines)


def _renumbered_line(line: str, numbers: dict[int, int]) -> str:
    """The line with the new numbers, indented as it was."""
    indent = line[: len(line) - len(line.lstrip())]
    return indent + renumbered(line, lambda number: numbers.setdefault(number, len(numbers) + 1))


def _score(
    support: float, claim: str, hits: dict[int, Hit], cited: Sequence[int], *, true: bool
) -> tuple[float, float, bool]:
    texts = [hits[number].chunk.text for number in cited or hits]
    return support, word_coverage(claim, texts), true


def answers_figures(tally: Tally) -> dict[str, Any]:
    """The figures as JSON."""
    false = sum(tally.false.values(), Counter[Verdict]())
    shares = {"true": _shares(tally.true), "false": _shares(false)}
    support, words, truth = (np.array(column) for column in zip(*tally.scores, strict=True))
    return {
        "answers": tally.answers,
        "intact": tally.intact,
        "refused": tally.refused,
        "corrected_citations": tally.corrected,
        **shares,
        "false_by_kind": {kind: _shares(counts) for kind, counts in sorted(tally.false.items())},
        "likelihood_ratio": {
            "flag": _ratio(shares["false"]["doubtful"], shares["true"]["doubtful"]),
            "tick": _ratio(shares["false"]["supported"], shares["true"]["supported"]),
        },
        "auroc": {"support": auroc(support, truth.astype(bool)), "word_coverage": auroc(words, truth.astype(bool))},
    }


def _shares(counts: Counter[Verdict]) -> dict[str, Any]:
    total = sum(counts.values())
    return {"n": total, **{verdict: counts[verdict] / total if total else 0.0 for verdict in VERDICTS}}


def _ratio(false: float, true: float) -> float | None:
    return false / true if true else None


def answers_text(figures: dict[str, Any]) -> str:
    """The figures for a terminal."""
    counts = f"{figures['answers']} answers: {figures['intact']} arrive as written, {figures['refused']} refused"
    lines = [
        f"{counts}, {figures['corrected_citations']} markers corrected",
        f"{'':<14}{'n':>6}{'ticked':>9}{'neutral':>9}{'flagged':>9}",
    ]
    rows = {"true claims": figures["true"], "false claims": figures["false"], **figures["false_by_kind"]}
    for name, shares in rows.items():
        cells = "".join(f"{shares[verdict]:>9.1%}" for verdict in VERDICTS)
        lines.append(f"{name:<14}{shares['n']:>6}{cells}")
    ratios, areas = figures["likelihood_ratio"], figures["auroc"]
    texts = {name: "–" if ratio is None else f"{ratio:.2f}" for name, ratio in ratios.items()}
    lines.append(f"likelihood ratio of a flag {texts['flag']}, of a tick {texts['tick']}")
    lines.append(f"AUROC of the support {areas['support']:.3f}, of word coverage {areas['word_coverage']:.3f}")
    return "\n".join(lines)


def _hit(number: int, passage: PassageLine) -> Hit:
    """The passage as a hit; only its text and headings are read."""
    chunk = Chunk(
        id=ChunkId(f"passage-{number}"),
        text=passage.text,
        book_id="",
        module="",
        chapter=0,
        lesson=0,
        source_file=passage.doc,
        parent_doc_id=ParentId(passage.doc),
        section_title=passage.trail[-1] if passage.trail else None,
        trail=tuple(passage.trail),
        breadcrumb=" › ".join(passage.trail),
        line_start=max(passage.lines[0], 1),
        line_end=max(passage.lines[1], 1),
        hardware_tier=1,
        proficiency_level="",
        layer="",
        chunk_index=0,
        total_chunks=1,
        prev_chunk_id=None,
        next_chunk_id=None,
        page_title="",
        module_title="",
        chapter_title="",
        lesson_title="",
        url="",
        sections=(),
        content_hash=content_hash(passage.text),
        source_file_hash="",
        word_count=len(passage.text.split()),
        token_count=len(passage.text.split()),
        char_count=len(passage.text),
    )
    return Hit(chunk=chunk, rank=number, score=0.0, similarity=0.0, relevance=0.0, lexical=0.0, windows=())
