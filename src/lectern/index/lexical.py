"""Terms for the lexical half of the index, by Qdrant's BM25 with the book's language.

Code and prose share one vocabulary: the tokenizer keeps `cmd_vel` as one word and as its parts, so an identifier is
found by its name and by its parts. A language without a stemmer is split by its script and not stemmed. If you change
the terms of a text, raise LEXICAL_VERSION in `reading/chunking.py`; otherwise books keep the old terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, SparseVector, StopwordsSet, TokenizerType

from lectern.text.words import spelt_words

UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my"})  # only the multilingual tokenizer splits them
_ENGINE_CODES = {"nb": "no", "nn": "no"}  # the engine's code for both written forms of Norwegian


def _bm25(language: str) -> Bm25:
    """The tokenizer and stemmer of a language by its first subtag: `en-US`, `EN` and `en_GB` are all English."""
    code = language.replace("_", "-").partition("-")[0].lower()
    return _bm25_of(_ENGINE_CODES.get(code, code))


@lru_cache(maxsize=32)
def _bm25_of(language: str) -> Bm25:
    tokenizer = TokenizerType.Multilingual if language in UNSPACED_LANGUAGES else TokenizerType.Code
    try:
        return Bm25(Bm25Config(language=language, tokenizer=tokenizer))
    except ValueError:  # the engine raises it for a language without a stemmer
        no_stopwords = StopwordsSet(languages=set(), custom=set())
        return Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual, stopwords=no_stopwords, stemmer=DisabledStemmer()))


def passage_terms(trail: Sequence[str], text: str, language: str) -> SparseVector:
    """The weighted terms of a chunk: its trail and its text, as they are embedded."""
    return _bm25(language).embed_document("\n".join([*trail, text]))


def shared_words(text: str, query: str, language: str) -> list[tuple[int, int]]:
    """The spans of the words in a text that the query has too, in any inflected form."""
    query_indices = set(query_terms(query, language).indices)
    is_shared: dict[str, bool] = {}
    spans = []
    for word in spelt_words(text):
        if word[0] not in is_shared:
            is_shared[word[0]] = not query_indices.isdisjoint(query_terms(word[0], language).indices)
        if is_shared[word[0]]:
            spans.append(word.span())
    return spans


def query_terms(text: str, language: str) -> SparseVector:
    """The terms of a question."""
    return _bm25(language).embed_query(text)
