"""Splits texts into words and stems them, so that `nodes` equals `node`; and lists words without content of their
own. Every way to cut a text into words is here, and the only list of function words.

Weights of words by how common they are. A common word in a passage says little about whether the passage answers a
question, so the commonest words of English have the lowest weights. The list holds stems in the order of the local
model's vocabulary, which is roughly the order of frequency. A word that is not in the list has the weight 1, so all
words of other languages have it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_SPELT_WORD = re.compile(r"\w+(?:[.']\w+)*")
_TERM = re.compile(r"\w(?:[\w'’.+#/-]*\w)?")

# Runs of the scripts that have no gaps between words, or none that help: Chinese, Japanese and Korean, whose characters
# are syllables or words; and Thai, Lao, Burmese and Khmer, whose characters are letters.
UNSPACED_RUN = re.compile(
    r"(?P<syllables>[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f]+)"
    r"|(?P<letters>[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3]+)"
)
_NGRAM_SIZES = {"syllables": 2, "letters": 3}  # characters that are about a word
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")

# Words without content of their own. Some of them reverse the meaning of a sentence (not, before, more);
# `grounding/features.py` compares those.
FUNCTION_WORDS = frozenset(
    """a about above after again against all almost along already also although always am among an and another any
    anybody anyone anything are aren't around as at away be became because become becomes been before being below beside
    besides between beyond both but by came can can't cannot could couldn't did didn't do does doesn't doing don't down
    during each either else enough especially etc even ever every everybody everyone everything example few fewer for
    from further get gets getting give gives given go goes had hadn't has hasn't have haven't having he hence her here
    hers him his how however i if in indeed instance instead into is isn't it it's its itself just kind know known least
    less let lets like likewise made make makes making many may maybe me mean means might more moreover most much must
    mustn't my namely near neither never next no nobody non none nor not nothing now of off often on once only onto or
    other others otherwise our out over own particular per perhaps put puts quite rather really same say says several
    shall she should shouldn't simply since so some somebody someone something sometimes somewhat somewhere sort still
    such take takes taking than that that's the their them themselves then there therefore these they thing things this
    those though through thus till to together too toward towards under unless until up upon us use used uses using
    usually very via was wasn't way we well went were weren't what whatever when whenever where whereas whether which
    while who whoever whole whom whose why will with within without won't would wouldn't yes yet you
    your yours""".split()
)

# Words of a question that say nothing about its topic.
ASKING_WORDS = frozenset(
    "compare describe examples explain help list meant name need one please show tell thank thanks understand "
    "want".split()
)

# The parts of a book: a question names them to say where, not what.
BOOK_PARTS = frozenset("book chapter lesson".split())

# The weights of the confidence and of answerability were fitted with these words left out. Those of the offline model
# were fitted with fewer of them; fitted again they answer no more questions.
_NO_CONTENT = FUNCTION_WORDS | ASKING_WORDS | BOOK_PARTS
COMMON_STEMS_FILE = Path(__file__).parent / "everyday.txt"
MIN_WEIGHT = (
    0.3  # of the commonest word; weights grow with the logarithm of the rank and reach 1 at the end of the list
)
RARITY_SPAN = 3.0  # the last word of the list counts as (1 + RARITY_SPAN) times as rare as the first


def words_of(text: str) -> list[str]:
    """The words of a text, unchanged; `cmd_vel` is one word."""
    return _WORD.findall(text)


def word_matches(text: str) -> Iterator[re.Match[str]]:
    """The words of a text with their positions."""
    return _WORD.finditer(text)


def parts_of(text: str) -> list[str]:
    """The words of a text, with names cut into parts; `cmd_vel` is two words."""
    return _PART.findall(text)


def wording_of(text: str) -> list[str]:
    """The words of a text, with names cut into parts, and scripts without gaps into n-grams that overlap."""
    wording: list[str] = []
    at = 0
    for run in UNSPACED_RUN.finditer(text):
        size = _NGRAM_SIZES[run.lastgroup or ""]
        wording += parts_of(text[at : run.start()])
        wording += [run[0][start : start + size] for start in range(max(1, len(run[0]) - size + 1))]
        at = run.end()
    return wording + parts_of(text[at:])


def is_kana_ending(word: str) -> bool:
    """Whether a piece of Japanese has hiragana alone: particles and endings, which say nothing of the topic."""
    return _HIRAGANA.fullmatch(word) is not None


def letters_of(text: str) -> list[str]:
    """The runs of letters in a text; digits and signs separate them."""
    return _LETTERS.findall(text)


def spelt_words(text: str) -> Iterator[re.Match[str]]:
    """The words of a text with their positions; `isn't` and `2.5` are one word each."""
    return _SPELT_WORD.finditer(text)


def terms_of(text: str) -> list[re.Match[str]]:
    """The terms of a text with their positions: words with all signs inside them, as `start-up`, `node.js`, `don't`."""
    return list(_TERM.finditer(text))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    return str(_stemmer.stemWord(word))


def stems(text: str) -> set[str]:
    """The stems of all words of a text."""
    return {stem(word) for word in words_of(text.lower())}


def content_stems(question: str) -> set[str]:
    """The stems of the words that say what a question is about."""
    return {stem(word) for word in words_of(question.lower()) if word not in _NO_CONTENT}


def one_edit(first: str, second: str) -> bool:
    """Whether two different words differ by one letter that is added, removed or replaced, or by two that are
    swapped."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    if len(longer) - len(shorter) > 1:
        return False
    at = next((place for place, letter in enumerate(shorter) if longer[place] != letter), len(shorter))
    if len(longer) > len(shorter):
        return longer[at + 1 :] == shorter[at:]
    if longer[at + 1 :] == shorter[at + 1 :]:
        return True
    return longer[at : at + 2] == shorter[at : at + 2][::-1] and longer[at + 2 :] == shorter[at + 2 :]


def word_weight(stem: str) -> float:
    """The weight of a stem, from MIN_WEIGHT to 1."""
    return _weights().get(stem, 1.0)


def rare_words(text: str) -> list[str]:
    """The words of a text that say what it is about and are not common, in lower case."""
    words = dict.fromkeys(words_of(text.lower()))
    return [word for word in words if word not in _NO_CONTENT and word_weight(stem(word)) == 1]


@cache
def _weights() -> dict[str, float]:
    stems = COMMON_STEMS_FILE.read_text(encoding="utf-8").split()
    return {
        stem: max(MIN_WEIGHT, math.log1p(RARITY_SPAN * rank / len(stems)) / math.log1p(RARITY_SPAN))
        for rank, stem in enumerate(stems)
    }
