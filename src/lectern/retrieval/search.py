"""Hybrid search: the question's vector and words, the reader's scope, one ranking. Candidates are ids with scores; a
chunk is read from the index only if the reader gets to see it."""

from __future__ import annotations

import time

from lectern.domain.chunks import IndexedChunk
from lectern.domain.evidence import Findings, Hit
from lectern.domain.scope import ResolvedScope, SearchQuery
from lectern.ports.index import Collections, IndexView
from lectern.ports.ledger import Ledger
from lectern.retrieval.fusion import Ranked, rank
from lectern.retrieval.neighbours import Neighbours, neighbours
from lectern.retrieval.scope import resolve

CANDIDATES = 30  # from each of the two searches, at least; more were measured and changed nothing
SPARE = 2  # times as many as are wanted, so that duplicates and thresholds do not starve a page


class HybridSearch:
    """Finds chunks of one book for one reader."""

    def __init__(self, collections: Collections, ledger: Ledger, default_book: str | None = None) -> None:
        self._shelf = collections
        self._ledger = ledger
        self._default_book = default_book

    async def __call__(self, query: SearchQuery) -> Findings:
        """The best hits in the scope that the query names."""
        return await self.within(await resolve(query.scope, self._ledger, self._default_book), query)

    async def within(self, scope: ResolvedScope, query: SearchQuery) -> Findings:
        """The best hits in a resolved scope, with everything that was applied to get them."""
        begun = time.perf_counter()
        text = query.text.strip()
        entry, where = scope.entry, scope.where
        serving = await self._shelf.serving(entry)
        [vector] = await serving.embedder.embed([text], purpose="question")

        async def work(view: IndexView) -> tuple[list[Ranked], dict[str, IndexedChunk], Neighbours]:
            most = max(CANDIDATES, SPARE * query.limit)  # one pool for all pages
            candidates = await view.find(vector, text, language=entry.manifest.language, where=where, limit=most)
            ranked = rank(candidates, query.mode)
            if query.similarity_threshold is not None:
                ranked = [one for one in ranked if one.similarity >= query.similarity_threshold]
            read = await view.with_vectors(where.book_id, [one.candidate.id for one in _page(ranked, query)])
            found = {name: one.stored.chunk for name, one in read.items()}
            return ranked, read, await neighbours(view, found, query.expand, query.expand)

        ranked, read, around = await serving.index.read(work)
        hits = tuple(
            Hit(
                chunk=read[one.candidate.id].stored.chunk,
                rank=position,
                score=one.score,
                similarity=one.similarity,
                lexical=one.lexical,
                windows=read[one.candidate.id].vectors,
                before=around[one.candidate.id].before,
                after=around[one.candidate.id].after,
            )
            for position, one in enumerate(_page(ranked, query), start=query.offset + 1)
        )
        return Findings(
            query=text,
            mode=query.mode,
            where=where,
            language=entry.manifest.language,
            hits=hits,
            vector=tuple(vector),
            total_found=len(ranked),
            query_time_ms=round((time.perf_counter() - begun) * 1000, 3),
        )


def _page(ranked: list[Ranked], query: SearchQuery) -> list[Ranked]:
    return ranked[query.offset : query.offset + query.limit]
