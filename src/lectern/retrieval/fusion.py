"""One order from two scores. Scores are added, not ranks: reciprocal rank fusion measured below the better single
search, and cosine plus a share of BM25 did not. All index adapters share this code; ties are ordered by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lectern.domain.evidence import Candidate
from lectern.domain.scope import SearchMode

LEXICAL_WEIGHT = 0.5  # the best of 0.3 to 0.7 on eight question sets; docs/benchmarks/retrieval.md


class Ranked(NamedTuple):
    """A candidate with its three scores, each 0…1."""

    candidate: Candidate
    score: float
    similarity: float
    lexical: float


def rank(candidates: Sequence[Candidate], mode: SearchMode) -> list[Ranked]:
    """The candidates, best first. A text that occurs in several places is one result, the best one."""
    best = max((candidate.bm25 for candidate in candidates), default=0.0)
    ranked = []
    for candidate in candidates:
        if mode == "lexical" and candidate.bm25 <= 0:
            continue  # shares no word with the question
        similarity = min(max(candidate.cosine, 0.0), 1.0)
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
