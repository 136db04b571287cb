"""The words of a question, weighted by how rare they are in the book.

This is the only place where rarity (IDF) is computed. The engines get weighted terms and add up products, so the
embedded index, a server of any version and every shard of a cluster rank alike. The counts come from the ledger.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qdrant_edge import SparseVector

from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.scope import ChunkFilter
from lectern.index import lexical
from lectern.ports.index import CountedChunk, IndexView, Lexicon, TermCounts

MAX_RECOUNTS = 3  # of one search; a book that changes meanwhile is counted again


@dataclass(frozen=True, slots=True)
class WeightedTerms:
    """Terms of a question that the book has, each with its weight."""

    indices: list[int]
    values: list[float]


def idf(chunks: int, chunks_with_term: int) -> float:
    """How rare a term is: Qdrant's own formula, with logarithm and smoothing, which is never negative."""
    rest = max(chunks - chunks_with_term, 0)
    return math.log1p((rest + 0.5) / (chunks_with_term + 0.5))


def weigh(terms: SparseVector, counts: TermCounts) -> WeightedTerms:
    """The terms of a question, weighted with these counts; terms that no chunk has are left out."""
    weights = {
        term: value * idf(counts.chunks, counts.by_term[term])
        for term, value in zip(terms.indices, terms.values, strict=True)
        if counts.by_term.get(term)
    }
    return WeightedTerms(list(weights), list(weights.values()))


async def current_counts(
    terms: Sequence[int], language: str, book_id: str, lexicon: Lexicon, view: IndexView
) -> TermCounts:
    """The counts of terms in a book. A book that was changed by a version without counts is counted first."""
    counts = await lexicon.counts(book_id, terms)
    for _ in range(MAX_RECOUNTS):
        if counts.complete:
            break
        chunks = await view.chunks(ChunkFilter(book_id=book_id))
        await lexicon.recount(book_id, counts.epoch, counted(chunks, language))
        counts = await lexicon.counts(book_id, terms)
    return counts


def count_terms(chunks: Iterable[Chunk], language: str) -> dict[int, int]:
    """In how many of these chunks each term occurs."""
    terms = (term for chunk in chunks for term in lexical.passage_terms(chunk.trail, chunk.text, language).indices)
    return dict(Counter(terms))


def counted(chunks: Sequence[StampedChunk], language: str) -> Iterator[CountedChunk]:
    """Every chunk with the terms that it is found by."""
    for stored in chunks:
        yield stored.chunk.id, lexical.passage_terms(stored.chunk.trail, stored.chunk.text, language).indices
