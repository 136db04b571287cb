"""Measures the chunker by exact excerpts. Of the tokens that answer a question: how many are in the five chunks that
search finds (recall), what share of those chunks they are (precision), and both combined (intersection over union).
`ideal` uses all chunks that contain a part of the answer, as a perfect search would, and so measures the chunk borders
alone. `last_sentence` searches for a chunk by its last sentence, which an embedder that reads only the beginning of a
chunk cannot find.

A chunk is the author's lines without some markup, plus what the reader adds to keep fences and tables whole. So the
words of a chunk are matched in order with the words of its lines. Words that were dropped are skipped, and words that
were added match nothing.
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
from lectern.evals.concurrency import run_concurrently
from lectern.evals.datasets import Question, QuestionSet, head_of
from lectern.evals.indexed_sets import Advance, IndexedSet
from lectern.evals.metrics import SEED, TOKEN_METRICS, overlap
from lectern.evals.runs import MetricValues
from lectern.text.pieces import sentences_of

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LINE = re.compile(r"\r\n|\r|\n")
MARKUP_FACTOR, MARKUP_WORDS = 3, 1000  # how far to look for the rest of a chunk: markup may be longer than its text
TOP_K = 5  # chunks that a question is answered from by default
MAX_LAST_SENTENCES = 500  # a sample, because a large book has thousands


class TokenText:
    """The tokens of a text, with their positions."""

    def __init__(self, text: str) -> None:
        matches = list(_TOKEN.finditer(text))
        self.words = [match[0] for match in matches]
        self._starts = [match.start() for match in matches]
        self._ends = [match.end() for match in matches]
        self._lines = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]

    def between(self, start: int, end: int) -> range:
        """The tokens that have a character in `start` to `end`."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def of_lines(self, first: int, last: int) -> range:
        """The tokens of lines `first` to `last`, counted from 1."""
        top = len(self._lines) - 1
        return self.between(self._lines[min(first - 1, top)], self._lines[min(last, top)])


def tokens_by_chunk(text: TokenText, chunks: Iterable[Chunk]) -> dict[str, frozenset[int]]:
    """The tokens of a document that each of its chunks contains; the chunks are in order."""
    tokens: dict[str, frozenset[int]] = {}
    cursor = 0
    for chunk in chunks:
        lines = text.of_lines(chunk.line_start, chunk.line_end)
        places = _token_places(text.words, _TOKEN.findall(chunk.text), range(max(cursor, lines.start), lines.stop))
        cursor = max([cursor, *(place + 1 for place in places)])
        tokens[chunk.id] = frozenset(places)
    return tokens


def _token_places(words: Sequence[str], chunk_words: Sequence[str], within: range) -> list[int]:
    """The positions of a chunk's words: first as long as they agree word for word, the rest by longest common runs."""
    same = 0
    for at, word in zip(within, chunk_words, strict=False):
        if words[at] != word:
            break
        same += 1
    places = list(within[:same])
    rest, begin = chunk_words[same:], within.start + same
    window = words[begin : min(within.stop, begin + len(rest) * MARKUP_FACTOR + MARKUP_WORDS)]
    matcher = SequenceMatcher(None, rest, window, autojunk=False)
    for run in matcher.get_matching_blocks() if rest else ():
        places += range(begin + run.b, begin + run.b + run.size)
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkedCorpus:
    """A corpus and its chunks."""

    texts: Mapping[str, TokenText]  # by document
    heads: Mapping[str, int]  # how many characters precede a document's own text
    tokens: Mapping[str, frozenset[int]]  # by chunk, numbered through all documents
    bases: Mapping[str, int]  # the number of each document's first token

    def gold(self, question: Question) -> frozenset[int]:
        """The tokens that answer a question."""
        return frozenset(
            self.bases[excerpt.document] + token
            for excerpt in question.excerpts
            for token in self.texts[excerpt.document].between(
                self.heads[excerpt.document] + excerpt.start, self.heads[excerpt.document] + excerpt.end
            )
        )

    def ideal(self, gold: frozenset[int]) -> frozenset[int]:
        """All tokens of the chunks that contain any of these tokens."""
        return frozenset[int]().union(*(tokens for tokens in self.tokens.values() if tokens & gold))


async def measure_chunking(
    indexed_set: IndexedSet, questions: QuestionSet, advance: Advance
) -> dict[str, MetricValues]:
    """Measure the three modes `hybrid`, `ideal` and `last_sentence`."""
    if not questions.documents or not all(question.excerpts for question in questions.questions):
        raise SourceError(
            f"{questions.name!r} does not say where its documents answer: every gold needs a `span`, in a corpus.jsonl"
        )
    chunks = [stored.chunk for stored in await indexed_set.lectern.app.library.chunks(questions.books[0].book_id)]
    corpus = _chunk_corpus(questions, chunks)
    golds = {question.id: corpus.gold(question) for question in questions.questions}
    if empty := [name for name, gold in golds.items() if not gold]:
        raise SourceError(
            f"{questions.name!r}: {len(empty)} questions have spans that hold no word of their documents, the first is "
            f"{empty[0]!r}; mend the `span` of its gold"
        )

    async def ask(question: Question) -> tuple[float, ...]:
        findings = await indexed_set.lectern.search(question.text, book=question.book_id, limit=TOP_K)
        tokens = frozenset[int]().union(*(corpus.tokens[hit.chunk.id] for hit in findings.hits))
        return overlap(tokens, golds[question.id])

    rows = await run_concurrently(questions.questions, ask, lambda count, total: advance("Asking", count, total))
    hybrid = {question.id: row for question, row in zip(questions.questions, rows, strict=True)}
    ideal = {name: overlap(corpus.ideal(gold), gold) for name, gold in golds.items()}
    return {
        "hybrid": MetricValues(metrics=TOKEN_METRICS, values=hybrid),
        "ideal": MetricValues(metrics=TOKEN_METRICS, values=ideal),
        "last_sentence": await _last_sentences(indexed_set, chunks, advance),
    }


def _chunk_corpus(questions: QuestionSet, chunks: list[Chunk]) -> _ChunkedCorpus:
    names = questions.books[0].documents
    by_document = defaultdict(list)
    for chunk in chunks:  # by source_file and chunk_index
        by_document[names[chunk.source_file]].append(chunk)
    texts, bases, tokens, first = {}, {}, dict[str, frozenset[int]](), 0
    for document in questions.documents:
        text = TokenText(head_of(document) + document.text)
        texts[document.id], bases[document.id] = text, first
        for chunk_id, places in tokens_by_chunk(text, by_document[document.id]).items():
            tokens[chunk_id] = frozenset(first + place for place in places)
        first += len(text.words)
    heads = {document.id: len(head_of(document)) for document in questions.documents}
    return _ChunkedCorpus(texts=texts, heads=heads, tokens=tokens, bases=bases)


async def _last_sentences(indexed_set: IndexedSet, chunks: list[Chunk], advance: Advance) -> MetricValues:
    min_length, max_length = QUERY_LENGTH
    queries = {}
    for chunk in chunks:
        sentences = sentences_of(chunk.text)
        if sentences and len(sentences[-1]) >= min_length:
            queries[chunk] = sentences[-1][-max_length:]
    sample = random.Random(SEED).sample(list(queries), min(MAX_LAST_SENTENCES, len(queries)))  # noqa: S311  # no secret

    async def ask(chunk: Chunk) -> tuple[float]:
        findings = await indexed_set.lectern.search(queries[chunk], book=chunk.book_id, limit=TOP_K, mode="dense")
        return (float(any(hit.chunk.content_hash == chunk.content_hash for hit in findings.hits)),)

    rows = await run_concurrently(sample, ask, lambda count, total: advance("Asking for last sentences", count, total))
    values = {str(chunk.id): row for chunk, row in zip(sample, rows, strict=True)}
    return MetricValues(metrics=(f"recall@{TOP_K}",), values=values)
