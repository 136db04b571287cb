"""Terms for the lexical half of the index, by Qdrant's BM25 with the book's language.

Code and prose share one vocabulary: the tokenizer keeps `cmd_vel` as one word and as its parts, so an identifier is
found by its name and by its parts. A language without a stemmer is split at its gaps and not stemmed.

Some scripts have no gaps between words. Their letters are cut into n-grams here, for passages and questions alike, in
whatever book they are. Chinese, Japanese and Korean words often have two characters or one, so they are cut into single
characters and pairs: with three, one in eight questions of a Japanese book found nothing. Thai, Lao, Khmer and Burmese
write words with many letters, so they are cut into threes.

If you change the terms of a text, raise LEXICAL_VERSION in `reading/chunking.py`; otherwise books keep the old terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, SparseVector, StopwordsSet, TokenizerType

from lectern.text.language import main_code
from lectern.text.words import UNSPACED_RUN, spelt_words

UNSPACED_LANGUAGES = frozenset({"zh", "ja", "ko", "th", "lo", "km", "my"})
_SIZES = {"syllables": (1, 2), "letters": (3,)}  # characters of an n-gram

Embed = Callable[[Bm25, str], SparseVector]
Span = tuple[int, int]


def _bm25(language: str) -> Bm25:
    """The tokenizer and stemmer of a language by its first subtag: `en-US`, `EN` and `en_GB` are all English. The words
    with gaps in a language without them are mostly English terms and code."""
    code = main_code(language)
    return _bm25_of("en" if code in UNSPACED_LANGUAGES else code)


@lru_cache(maxsize=32)
def _bm25_of(language: str) -> Bm25:
    try:
        return Bm25(Bm25Config(language=language, tokenizer=TokenizerType.Code))
    except ValueError:  # the engine raises it for a language without a stemmer
        return _unstemmed(TokenizerType.Multilingual)


@cache
def _unstemmed(tokenizer: TokenizerType) -> Bm25:
    no_stopwords = StopwordsSet(languages=set(), custom=set())
    return Bm25(Bm25Config(tokenizer=tokenizer, stopwords=no_stopwords, stemmer=DisabledStemmer()))


def passage_terms(trail: Sequence[str], text: str, language: str) -> SparseVector:
    """The weighted terms of a chunk: its trail and its text, as they are embedded."""
    return _terms("\n".join([*trail, text]), language, lambda bm25, part: bm25.embed_document(part))


def query_terms(text: str, language: str) -> SparseVector:
    """The terms of a question."""
    return _terms(text, language, lambda bm25, part: bm25.embed_query(part))


def _terms(text: str, language: str, embed: Embed) -> SparseVector:
    """The terms of the words and of the n-grams of a text together."""
    spans = list(_ngram_spans(text))
    if not spans:
        return embed(_bm25(language), text)
    ngrams = embed(_unstemmed(TokenizerType.Whitespace), " ".join(text[start:end] for start, end in spans))
    words = embed(_bm25(language), UNSPACED_RUN.sub(" ", text))
    weights = dict(zip(words.indices, words.values, strict=True))
    for index, value in zip(ngrams.indices, ngrams.values, strict=True):
        weights[index] = max(value, weights.get(index, 0.0))
    return SparseVector(list(weights), list(weights.values()))


def _ngram_spans(text: str) -> Iterator[Span]:
    """Where the n-grams of the scripts without gaps are in a text. A run that is shorter than its n-grams is one."""
    for run in UNSPACED_RUN.finditer(text):
        first, last = run.span()
        sizes = _SIZES[run.lastgroup or ""]
        if last - first < sizes[0]:
            yield first, last
        for size in sizes:
            yield from ((start, start + size) for start in range(first, last - size + 1))


def shared_words(text: str, query: str, language: str) -> list[Span]:
    """The spans of the words in a text that the query has too, in any inflected form. Of a script without gaps, they
    are the longest runs of n-grams that the query has; single characters are shared too often to say anything."""
    query_indices = set(query_terms(query, language).indices)
    query_ngrams = {query[start:end] for start, end in _ngram_spans(query) if end - start > 1}

    @cache
    def is_shared(word: str) -> bool:
        return not query_indices.isdisjoint(query_terms(word, language).indices)

    spaced = UNSPACED_RUN.sub(lambda run: " " * len(run[0]), text)
    shared = [word.span() for word in spelt_words(spaced) if is_shared(word[0])]
    shared += [(start, end) for start, end in _ngram_spans(text) if text[start:end] in query_ngrams]
    spans: list[Span] = []
    for start, end in sorted(shared):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans
