"""Hybrid search: one ranking by the vector and the words of a question, within the reader's scope. Candidates are ids
with scores. Chunks are read from the index for the requested page alone.

The chunks around a chunk, within its lesson. Each step along the lessons is one read for all chunks.

One order from two scores. In the mode `reranked` a network reads the first results with the question, and the
probability that a result answers is a third score. Scores are added, not ranks: reciprocal rank fusion measured below
the better single search, and cosine plus a share of BM25 did not. All index adapters share this code; ties are ordered
by id.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lectern.domain.books import BookEntry
from lectern.domain.chunks import Chunk, ChunkId, IndexedChunk
from lectern.domain.errors import Busy, LecternError
from lectern.domain.evidence import Around, Candidate, Findings, Hit
from lectern.domain.scope import ResolvedScope, SearchMode, SearchQuery
from lectern.ports.index import Collections, IndexView
from lectern.ports.ledger import Ledger
from lectern.retrieval.scope import resolve
from lectern.text.words import rare_words, stem, stems

LEXICAL_WEIGHT = 0.5  # the best of 0.3 to 0.7 on eight question sets; docs/benchmarks/retrieval.md
Neighbours = dict[str, Around]
Step = Callable[[Chunk], ChunkId | None]
Scale = Callable[[float], float]  # from a cosine to its relevance
AnswerOdds = Callable[[str, Sequence[Hit]], Awaitable[Sequence[float]]]  # the log-odds that each hit answers a text
MIN_CANDIDATES = 30  # of each of the two searches; more found no more (docs/decisions/0004-fusion.md)
MAX_ATTEMPTS = 10  # of a search that changes of the list of books disturb
RERANKED = 20  # first results of the hybrid order that the network reads in the mode `reranked`
ANSWER_WEIGHT = 0.5  # of the probability that a result answers, beside its hybrid score; docs/benchmarks/retrieval.md
MAX_LOOKED_FOR = 6  # words of a query that the results lack and that are looked for one by one
CANDIDATES_PER_RESULT = 2  # so that a page is full although duplicates and weak hits are left out


class Ranked(NamedTuple):
    """A candidate with its three scores, each 0…1."""

    candidate: Candidate
    score: float
    similarity: float
    lexical: float


def plain_cosine(cosine: float) -> float:
    """The cosine itself, where no embedder's scale is known."""
    return cosine


def rank(
    candidates: Sequence[Candidate], mode: SearchMode, is_near: Callable[[float], bool] = lambda _: True
) -> list[Ranked]:
    """The candidates whose similarity is near enough, best first. A text that occurs in several places is one result,
    the best one. Candidates that are left out change no score."""
    best = max((candidate.bm25 for candidate in candidates), default=0.0)
    ranked = []
    for candidate in candidates:
        if mode == "lexical" and candidate.bm25 <= 0:
            continue  # shares no word with the question
        similarity = min(max(candidate.cosine, 0.0), 1.0)
        if not is_near(similarity):
            continue
        lexical = candidate.bm25 / best if best > 0 else 0.0
        score = _score(mode, similarity, lexical)
        ranked.append(Ranked(candidate=candidate, score=score, similarity=similarity, lexical=lexical))
    ranked.sort(key=lambda entry: (-entry.score, entry.candidate.id))
    hashes: set[str] = set()
    distinct = []
    for entry in ranked:
        if entry.candidate.content_hash not in hashes:
            hashes.add(entry.candidate.content_hash)
            distinct.append(entry)
    return distinct


def _score(mode: SearchMode, similarity: float, lexical: float) -> float:
    if mode == "dense":
        return similarity
    if mode == "lexical":
        return lexical
    return (similarity + LEXICAL_WEIGHT * lexical) / (1 + LEXICAL_WEIGHT)


async def neighbours(view: IndexView, chunks: Mapping[str, Chunk], before: int, after: int) -> Neighbours:
    """This many neighbours on either side of each chunk; fewer at the beginning and end of a lesson."""
    earlier = await _walk(view, chunks, before, lambda chunk: chunk.prev_chunk_id)
    later = await _walk(view, chunks, after, lambda chunk: chunk.next_chunk_id)
    return {name: Around(before=tuple(reversed(earlier[name])), after=tuple(later[name])) for name in chunks}


async def _walk(view: IndexView, chunks: Mapping[str, Chunk], steps: int, step: Step) -> dict[str, list[Chunk]]:
    walked: dict[str, list[Chunk]] = {name: [] for name in chunks}
    current = dict(chunks)
    for _ in range(steps):
        next_ids = {name: next_id for name, chunk in current.items() if (next_id := step(chunk)) is not None}
        if not next_ids:
            break
        book_id = next(iter(current.values())).book_id  # all chunks are of one book
        stored = await view.by_ids(book_id, list(dict.fromkeys(next_ids.values())))
        current = {name: stored[next_id].chunk for name, next_id in next_ids.items() if next_id in stored}
        for name, chunk in current.items():
            walked[name].append(chunk)
    return walked


class HybridSearch:
    """Finds chunks of one book for one reader."""

    def __init__(
        self,
        collections: Collections,
        ledger: Ledger,
        default_book: str | None = None,
        scale_of: Callable[[BookEntry], Scale] = lambda _: plain_cosine,
        answer_odds: AnswerOdds | None = None,
    ) -> None:
        self._collections = collections
        self._ledger = ledger
        self._default_book = default_book
        self._scale_of = scale_of
        self._answer_odds = answer_odds

    async def __call__(self, query: SearchQuery, readable: frozenset[str] | None = None) -> Findings:
        """The best hits in the scope that the query names, in a book that the caller may read; None means any.

        The scope is resolved with the books that this process knows. To ask first whether they are current would be one
        more statement for every search; the search's own first statement tells. If they are not, it is done again.
        """
        books = await self._ledger.known_books()
        for _ in range(MAX_ATTEMPTS):
            try:
                scope = await self._resolve(query, books, readable)
                findings = await self.within(scope, query)
            except LecternError:
                newer = await self._ledger.books()
                if newer == books:
                    raise
            else:
                if self._ledger.are_current(books):
                    return findings
                newer = await self._ledger.books()
                if _served_alike(scope, await self._resolve(query, newer, readable)):
                    return findings
            books = newer
        raise Busy("the books change faster than they can be searched; try again in a moment")

    async def _resolve(
        self, query: SearchQuery, books: tuple[BookEntry, ...], readable: frozenset[str] | None
    ) -> ResolvedScope:
        return await resolve(query.scope, _KnownBooks(books, self._ledger), self._default_book, readable)

    async def within(self, scope: ResolvedScope, query: SearchQuery) -> Findings:
        """The best hits in a resolved scope, with everything that was applied to get them."""
        start = time.perf_counter()
        text = query.text.strip()
        entry, where = scope.entry, scope.where
        serving, scale = await self._collections.serving(entry), self._scale_of(entry)
        [vector] = await serving.embedder.embed([text], purpose="question")

        async def work(view: IndexView) -> tuple[list[Ranked], dict[str, IndexedChunk], Neighbours, tuple[str, ...]]:
            async def find(limit: int, words: str = text) -> list[Candidate]:
                return await view.find(vector, words, language=entry.manifest.language, where=where, limit=limit)

            ranked = await _ranked(find, query, scale)
            ids = [result.candidate.id for _, result in _shown(ranked, query)]
            stored = await view.with_vectors(where.book_id, ids)
            chunks = {name: indexed.stored.chunk for name, indexed in stored.items()}
            around = await neighbours(view, chunks, query.expand, query.expand)
            absent = await _absent_words(find, text, chunks.values()) if query.find_absent else ()
            return ranked, stored, around, absent

        ranked, stored, around, absent = await serving.index.read(work)
        hits = [
            _hit(position, result, stored[result.candidate.id], around[result.candidate.id], scale)
            for position, result in _shown(ranked, query)
        ]
        if query.mode == "reranked" and self._answer_odds is not None:
            hits = await reranked(text, hits, self._answer_odds)
        first, last = query.offset, query.offset + query.limit
        return Findings(
            query=text,
            mode=query.mode,
            where=where,
            language=entry.manifest.language,
            hits=tuple(hit for hit in hits if first < hit.rank <= last),
            vector=tuple(vector),
            total_found=len(ranked),
            query_time_ms=round((time.perf_counter() - start) * 1000, 3),
            absent=absent,
        )

    async def texts_with(self, scope: ResolvedScope, vector: Sequence[float], words: Sequence[str]) -> list[str]:
        """The texts in a scope, with their headings, that have the most of some words; none if no text has one. The
        index searches by a vector too: that of the question."""
        serving = await self._collections.serving(scope.entry)
        language, where = scope.entry.manifest.language, scope.where

        async def work(view: IndexView) -> list[str]:
            found = await view.find(list(vector), " ".join(words), language=language, where=where, limit=MIN_CANDIDATES)
            ids = [candidate.id for candidate in found if candidate.bm25 > 0]
            stored = await view.by_ids(where.book_id, ids)
            return [" ".join((*chunk.chunk.trail, chunk.chunk.text)) for chunk in stored.values()]

        return await serving.index.read(work)


async def _absent_words(
    find: Callable[[int, str], Awaitable[list[Candidate]]], text: str, chunks: Iterable[Chunk]
) -> tuple[str, ...]:
    """The rare words of a text that no chunk in the scope has. Each that the found chunks lack is looked for."""
    known = stems(" ".join(part for chunk in chunks for part in (*chunk.trail, chunk.text)))
    missing = [word for word in rare_words(text) if stem(word) not in known][:MAX_LOOKED_FOR]
    found = [await find(1, word) for word in missing]
    return tuple(
        word
        for word, candidates in zip(missing, found, strict=True)
        if not any(candidate.bm25 > 0 for candidate in candidates)
    )


async def _ranked(find: Callable[[int], Awaitable[list[Candidate]]], query: SearchQuery, scale: Scale) -> list[Ranked]:
    """The best distinct results at or above the threshold. There are `size` of them, or all that the scope has: so a
    wider filter never finds fewer, although copies of a text are one result."""
    size = limit = max(MIN_CANDIDATES, CANDIDATES_PER_RESULT * query.limit)  # the same for every page
    threshold = query.similarity_threshold or 0.0
    while True:
        candidates = await find(limit)
        ranked = rank(candidates, query.mode, lambda similarity: scale(similarity) >= threshold)
        if query.mode == "lexical":
            proposed = sum(candidate.bm25 > 0 for candidate in candidates)
        else:
            proposed = sum(scale(candidate.cosine) >= threshold for candidate in candidates)
        if len(ranked) >= size or proposed < limit:  # the index proposes `limit` of them if the scope has so many
            return ranked[:size]
        limit *= 2


@dataclass(frozen=True, slots=True)
class _KnownBooks:
    """The books as they were when a search began."""

    entries: tuple[BookEntry, ...]
    ledger: Ledger

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""
        return self.entries

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""
        return await self.ledger.modules(book_id)


def _served_alike(scope: ResolvedScope, newer: ResolvedScope) -> bool:
    """Whether a search in the one scope is a search in the other."""
    old, new = scope.entry, newer.entry
    same_place = (old.collection_name, old.fingerprint) == (new.collection_name, new.fingerprint)
    return scope.where == newer.where and same_place and old.manifest == new.manifest


def _shown(ranked: list[Ranked], query: SearchQuery) -> list[tuple[int, Ranked]]:
    """The results that are read from the index, with their ranks: the requested page, and those that may change places
    with it."""
    page = range(query.offset + 1, query.offset + query.limit + 1)
    changing = RERANKED if query.mode == "reranked" else 0
    return [(rank, result) for rank, result in enumerate(ranked, start=1) if rank <= changing or rank in page]


def _hit(rank: int, result: Ranked, indexed: IndexedChunk, around: Around, scale: Scale) -> Hit:
    return Hit(
        chunk=indexed.stored.chunk,
        rank=rank,
        score=result.score,
        similarity=result.similarity,
        relevance=scale(result.similarity),
        lexical=result.lexical,
        windows=indexed.vectors,
        before=around.before,
        after=around.after,
    )


async def reranked(text: str, hits: Sequence[Hit], answer_odds: AnswerOdds) -> list[Hit]:
    """The first hits in the order of a score to which the probability that they answer is added. The score of the
    others has nothing added, so that they stay below."""
    first = [hit for hit in hits if hit.rank <= RERANKED]
    chances = [1 / (1 + math.exp(-odds)) for odds in await answer_odds(text, first)]
    scored = [
        replace(hit, score=(hit.score + ANSWER_WEIGHT * chance) / (1 + ANSWER_WEIGHT))
        for hit, chance in zip(first, chances, strict=True)
    ]
    scored.sort(key=lambda hit: (-hit.score, hit.rank))
    below = [replace(hit, score=hit.score / (1 + ANSWER_WEIGHT)) for hit in hits if hit.rank > RERANKED]
    return [*(replace(hit, rank=rank) for rank, hit in enumerate(scored, start=1)), *below]
