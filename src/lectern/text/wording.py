"""Words as two texts share them: stemmed, and apart from those that tell nothing by themselves."""

from __future__ import annotations

from functools import lru_cache

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")

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


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in small letters."""
    return str(_stemmer.stemWord(word))
