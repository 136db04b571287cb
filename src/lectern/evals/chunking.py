"""The chunker, measured by exact excerpts: of the tokens that answer a question, how many are in the five chunks that
search finds (recall), how much else comes with them (precision), and both at once (intersection over union). `ideal`
counts the chunks that hold any of the answer, as a perfect search would bring them: what the cutting alone costs.
`last_sentence` asks for a chunk by its last sentence, which an embedder that reads only the beginning cannot find.

Which tokens of a document a chunk holds. A chunk is the author's lines less their markup, plus what the reader adds
to keep fences and tables whole; so its words are followed through the lines it comes from, in order, what was dropped
is stepped over, and what was added counts as nothing.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lectern.domain.chunks import Chunk
from lectern.domain.errors import SourceError
from lectern.domain.scope import QUERY_LENGTH
from lectern.evals.benches import Advance, Bench
from lectern.evals.datasets import Question, QuestionSet, head_of
from lectern.evals.metrics import SEED, TOKEN_METRICS, overlap
from lectern.evals.pacing import in_turn
from lectern.evals.runs import Measured
from lectern.text.pieces import sentences_of

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LINE = re.compile(r"\r\n|\r|\n")
DROPPED, LEEWAY = 3, 1000  # how far the rest of a chunk is looked for: markup may be longer than the text in it
FOUND = 5  # chunks that a question is answered from by default
SENTENCES = 500  # last sentences asked for; a sample, for a large book has thousands


class TokenText:
    """A text in tokens, each known by its place."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        self.words = [match[0] for match in found]
        self._starts = [match.start() for match in found]
        self._ends = [match.end() for match in found]
        self._lines = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]

    def between(self, start: int, end: int) -> range:
        """The tokens that have a character in `start` to `end`."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def of_lines(self, first: int, last: int) -> range:
        """The tokens of some lines, counted from 1."""
        top = len(self._lines) - 1
        return self.between(self._lines[min(first - 1, top)], self._lines[min(last, top)])


def held(text: TokenText, chunks: Iterable[Chunk]) -> dict[str, frozenset[int]]:
    """The tokens that each chunk of a document holds; the chunks come in order."""
    found: dict[str, frozenset[int]] = {}
    cursor = 0
    for chunk in chunks:
        lines = text.of_lines(chunk.line_start, chunk.line_end)
        places = _followed(text.words, _TOKEN.findall(chunk.text), range(max(cursor, lines.start), lines.stop))
        cursor = max([cursor, *(place + 1 for place in places)])
        found[chunk.id] = frozenset(places)
    return found


def _followed(words: Sequence[str], wanted: Sequence[str], within: range) -> list[int]:
    """Where these words stand: one after the other as far as that goes, the rest by the longest runs in common."""
    same = 0
    for at, word in zip(within, wanted, strict=False):
        if words[at] != word:
            break
        same += 1
    places = list(within[:same])
    rest, begin = wanted[same:], within.start + same
    there = words[begin : min(within.stop, begin + len(rest) * DROPPED + LEEWAY)]
    matcher = SequenceMatcher(None, rest, there, autojunk=False)
    for run in matcher.get_matching_blocks() if rest else ():
        places += range(begin + run.b, begin + run.b + run.size)
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """A corpus and how it was cut."""

    texts: Mapping[str, TokenText]  # by document
    heads: Mapping[str, int]  # how many characters stand before a document's own text
    tokens: Mapping[str, frozenset[int]]  # by chunk, numbered through all documents
    bases: Mapping[str, int]  # the number of each document's first token

    def gold(self, question: Question) -> frozenset[int]:
        """The tokens that answer."""
        return frozenset(
            self.bases[one.document] + token
            for one in question.excerpts
            for token in self.texts[one.document].between(
                self.heads[one.document] + one.start, self.heads[one.document] + one.end
            )
        )

    def ideal(self, gold: frozenset[int]) -> frozenset[int]:
        """All tokens of the chunks that hold any of these."""
        return frozenset[int]().union(*(tokens for tokens in self.tokens.values() if tokens & gold))


async def measure_chunking(bench: Bench, questions: QuestionSet, advance: Advance) -> dict[str, Measured]:
    """The three views: `hybrid`, `ideal` and `last_sentence`."""
    if not questions.documents or not all(question.excerpts for question in questions.questions):
        raise SourceError(
            f"{questions.name!r} does not say where its documents answer: every gold needs a `span`, in a corpus.jsonl"
        )
    chunks = [stored.chunk for stored in await bench.lectern.app.library.chunks(questions.books[0].book_id)]
    cut = _cut(questions, chunks)
    golds = {question.id: cut.gold(question) for question in questions.questions}
    if empty := [name for name, gold in golds.items() if not gold]:
        raise SourceError(
            f"{questions.name!r}: {len(empty)} questions have spans that hold no word of their documents, the first is "
            f"{empty[0]!r}; mend the `span` of its gold"
        )

    async def ask(question: Question) -> tuple[float, ...]:
        found = await bench.lectern.search(question.text, book=question.book_id, limit=FOUND)
        tokens = frozenset[int]().union(*(cut.tokens[hit.chunk.id] for hit in found.hits))
        return overlap(tokens, golds[question.id])

    rows = await in_turn(questions.questions, ask, lambda done, total: advance("Asking", done, total))
    hybrid = {question.id: row for question, row in zip(questions.questions, rows, strict=True)}
    ideal = {name: overlap(cut.ideal(gold), gold) for name, gold in golds.items()}
    return {
        "hybrid": Measured(metrics=TOKEN_METRICS, values=hybrid),
        "ideal": Measured(metrics=TOKEN_METRICS, values=ideal),
        "last_sentence": await _last_sentences(bench, chunks, advance),
    }


def _cut(questions: QuestionSet, chunks: list[Chunk]) -> _Cut:
    names = questions.books[0].documents
    by_document = defaultdict(list)
    for chunk in chunks:  # by source_file and chunk_index
        by_document[names[chunk.source_file]].append(chunk)
    texts, bases, tokens, first = {}, {}, dict[str, frozenset[int]](), 0
    for document in questions.documents:
        text = TokenText(head_of(document) + document.text)
        texts[document.id], bases[document.id] = text, first
        for chunk_id, places in held(text, by_document[document.id]).items():
            tokens[chunk_id] = frozenset(first + place for place in places)
        first += len(text.words)
    heads = {document.id: len(head_of(document)) for document in questions.documents}
    return _Cut(texts=texts, heads=heads, tokens=tokens, bases=bases)


async def _last_sentences(bench: Bench, chunks: list[Chunk], advance: Advance) -> Measured:
    least, most = QUERY_LENGTH
    asked = {}
    for chunk in chunks:
        sentences = sentences_of(chunk.text)
        if sentences and len(sentences[-1]) >= least:
            asked[chunk] = sentences[-1][-most:]
    sample = random.Random(SEED).sample(list(asked), min(SENTENCES, len(asked)))  # noqa: S311  # no secret

    async def ask(chunk: Chunk) -> tuple[float]:
        found = await bench.lectern.search(asked[chunk], book=chunk.book_id, limit=FOUND, mode="dense")
        return (float(any(hit.chunk.content_hash == chunk.content_hash for hit in found.hits)),)

    rows = await in_turn(sample, ask, lambda done, total: advance("Asking for last sentences", done, total))
    values = {str(chunk.id): row for chunk, row in zip(sample, rows, strict=True)}
    return Measured(metrics=(f"recall@{FOUND}",), values=values)
