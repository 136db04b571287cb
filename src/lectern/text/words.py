"""Words as texts share them: in small letters and stemmed, so that `nodes` meets `node`; and which of them tell nothing
by themselves."""

from __future__ import annotations

import re
from functools import lru_cache

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")

# Words that hold a sentence together and tell nothing by themselves. Those that turn its meaning round (not, before,
# more) are among them: `grounding/features.py` looks at these.
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

# Words that a question is asked with; they tell nothing about what is asked.
ASKING_WORDS = frozenset(
    "compare describe examples explain help list meant name need one please show tell thank thanks understand "
    "want".split()
)

# What is left out where a question is weighed: some of these, and the parts of a book. The weights of the confidence
# and of the offline model were fitted to this choice.
_COMMON = frozenset(
    "a about an and any are as at be book by can chapter could describe do does explain for from get give has have how "
    "i if in into is it its lesson list made make many me much my of on or our should show so tell than that the their "
    "them then there these they this those to up us use used using was we were what when where which who whom why will "
    "with would you your".split()
)


def words_of(text: str) -> list[str]:
    """The words of a text as they are written; `cmd_vel` is one."""
    return _WORD.findall(text)


def parts_of(text: str) -> list[str]:
    """The words of a text and the parts of its names; `cmd_vel` is two."""
    return _PART.findall(text)


def letters_of(text: str) -> list[str]:
    """The runs of letters in a text; digits and signs part them."""
    return _LETTERS.findall(text)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in small letters."""
    return str(_stemmer.stemWord(word))


def stems(text: str) -> set[str]:
    """Every word of a text."""
    return {stem(word) for word in words_of(text.lower())}


def telling_stems(question: str) -> set[str]:
    """The words that tell what a question is about."""
    return {stem(word) for word in words_of(question.lower()) if word not in _COMMON}


def one_edit(one: str, other: str) -> bool:
    """Whether two different words are one letter more, less, other or swapped apart."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if len(longer) - len(shorter) > 1:
        return False
    at = next((place for place, letter in enumerate(shorter) if longer[place] != letter), len(shorter))
    if len(longer) > len(shorter):
        return longer[at + 1 :] == shorter[at:]
    if longer[at + 1 :] == shorter[at + 1 :]:
        return True
    return longer[at : at + 2] == shorter[at : at + 2][::-1] and longer[at + 2 :] == shorter[at + 2 :]
