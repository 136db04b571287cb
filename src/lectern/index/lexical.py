"""Words for the lexical half of the index: Qdrant's own BM25, with the book's language.

Code and prose share one vocabulary: the tokenizer keeps `cmd_vel` as one word and as its parts, so an identifier is
found by its name and by its parts. A language without a stemmer is split by its script and not stemmed. If you change
the terms of a text, raise LEXICAL_VERSION in `reading/rules.py`; otherwise books keep the old terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, SparseVector, StopwordsSet, TokenizerType

_WORD = re.compile(r"\w+(?:[.']\w+)*")

UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my"})  # written without spaces: only this tokenizer splits them


_KNOWN_AS = {"nb": "no", "nn": "no"}  # the engine's name for both written forms of Norwegian


def _bm25(language: str) -> Bm25:
    """The splitter and stemmer of a language by its first subtag: `en-US`, `EN` and `en_GB` are all English."""
    code = language.replace("_", "-").partition("-")[0].lower()
    return _made(_KNOWN_AS.get(code, code))


@lru_cache(maxsize=32)
def _made(language: str) -> Bm25:
    tokenizer = TokenizerType.Multilingual if language in UNSPACED else TokenizerType.Code
    try:
        return Bm25(Bm25Config(language=language, tokenizer=tokenizer))
    except ValueError:  # the engine's word for a language without a stemmer
        nothing = StopwordsSet(languages=set(), custom=set())
        return Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual, stopwords=nothing, stemmer=DisabledStemmer()))


def passage_terms(trail: Sequence[str], text: str, language: str) -> SparseVector:
    """The weighted terms of a chunk: its trail and its text, as they are embedded."""
    return _bm25(language).embed_document("\n".join([*trail, text]))


def shared_words(text: str, query: str, language: str) -> list[tuple[int, int]]:
    """The spans of words in a text that the query also has, in whatever form."""
    wanted = set(query_terms(query, language).indices)
    kept: dict[str, bool] = {}
    found = []
    for word in _WORD.finditer(text):
        if word[0] not in kept:
            kept[word[0]] = not wanted.isdisjoint(query_terms(word[0], language).indices)
        if kept[word[0]]:
            found.append(word.span())
    return found


def query_terms(text: str, language: str) -> SparseVector:
    """The terms of a question."""
    return _bm25(language).embed_query(text)
