"""Words as two texts share them when one puts the other in its own words: stemmed, and in groups of words that may
stand for one another. The groups are few and plain; what they lack, the embedder's neighbours supply."""

from __future__ import annotations

from functools import lru_cache

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")

# Words that hold a sentence together and tell nothing by themselves. Those that turn its meaning round (not, before,
# more) are among them: `polarity.py` looks at these.
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

_GROUPS = """
accept take|acquire obtain get receive|adapt adjust tune|add append|advise recommend suggest advice|aim goal target
allow let permit enable|alter change modify edit|amount quantity|angle rotation|answer reply response solution
appear show|approximately about roughly around nearly circa some|arrive come reach|ask request demand require
assist help aid|author writer|automatic automatically|avoid prevent|begin start commence launch|big large
book novel|brief short quick|bring carry deliver|build construct make create produce generate|buy purchase
calculate compute work|call name term|cancel abort|car vehicle automobile|cause lead reason|check verify test examine
choose pick select|city town|close near nearby|combine join merge unite|complete finish|compose consist comprise
connect link join|constantly continuously continuous|consume use|contain hold include have|continue keep go
control steer|copy duplicate|correct right|cost price|country nation|customary usual typical common normal
cut reduce|damage harm spoil|danger risk|declare state|default standard|delay late|delete remove erase discard drop
depend rely|describe explain|design plan|detect notice find recognise recognize see|device equipment hardware
die death dead|differ different difference vary|difficult hard|directory folder|distinct separate separately
divide split|drop fall|easy simple|effect result consequence outcome|employ use|empty nothing|end finish stop
enough sufficient|entire whole all|error mistake fault|exceed above over|exchange swap|execute run
executable program|exist have|fail failure|fast quick rapid speedy|father dad parent|feedback progress|film movie
fit suit suitable|fix repair mend|forbid prohibit|force make|form shape|frequency rate|frequently often|function routine
fuse combine|gather collect|glue stick|go move travel|gone lost lose|good well|grab grasp grip|grow increase rise
guarantee ensure promise|halt stop standstill|handle treat|hide hidden|huge enormous|human person people
identical same|ignore neglect|illness disease|image picture frame photo|immediate immediately instant instantly once
important matter|inform tell|inside within|instruct command|intend mean|internally hood|invoke call run
keep retain hold store remain stay|kill terminate|lack without miss missing|last final|launch start|lay put place
learn train|legal law|length long|listen subscribe|little small few|live reside|locate find position
location place position spot|look see view|low small|machine robot|main chief principal primary|maximum most highest
maximal most|mean average|measure measurement|merely only just simply|method approach technique|middle centre center
minimum least lowest|minimal least|movement motion move|need require must|newest latest|number count
object thing|observe see watch|occasionally sometimes seldom|occur happen|offer provide supply give|old ancient
operate run work|order sequence|origin zero|own possess have|parameter setting|part piece portion component
pass run|path route|perform do|permit may|pick choose|place put|play perform|point location|possible can|power energy
precise exact accurate|prefer favour|prepare ready|present current|primary main|produce yield give|project work
protect guard|publish release send|publisher sender|pull drag|purpose goal aim|quick fast|rapid fast|rare seldom rarely
reach get|read scan|real actual true|realise realize implement|receive get|receiver subscriber listener|record log
recreate again|refer point|refuse reject decline deny|regard consider|relative|release publish|remain stay
remove delete|repeat again|replace substitute exchange|report say|represent stand mean|require need call|rest remain
result outcome|return give|robust reliable|run execute|safe secure|same identical equal|save store|scale size
search look seek|seem appear|send transmit publish|separate split|serve act|show display indicate reveal|shut close
sign mark|simulate simulation|size dimension|skip omit|slow slowly|solve resolve|sound audio|speak say talk tell
speed velocity fast|stand mean|state say declare express|step stage phase|stiff rigid|stop halt|store keep save
strong powerful|student learner reader|subscribe listen|succeed success|sum total|suppose assume|task job work
tell say state|test try trial|text write|think believe|though although|tilt lean incline|time moment|tiny small
tool utility|total whole|touch contact|trace follow|transmit send|transform convert turn|trip journey|try attempt
turn rotate|twice two double|type kind|understand grasp|unit|upright vertical|user person|usual typical normal
valid correct|value number|velocity speed|verify check|wait pause|walk go|want wish|warn alert warning|weight mass heavy
wide width broad|win victory winner|work function|worker employee|wrong incorrect false|year annual|yield give
"""


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in small letters."""
    return str(_stemmer.stemWord(word))


def _kin() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for group in _GROUPS.replace("\n", "|").split("|"):
        members = {stem(word) for word in group.split()}
        for member in members:
            table.setdefault(member, set()).update(members - {member})
    return {member: frozenset(others) for member, others in table.items()}


KIN = _kin()


def kindred(one: str, other: str) -> bool:
    """Whether two stems may stand for one another: the same group, or one word grown from the other."""
    if other in KIN.get(one, ()):
        return True
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return len(short) >= 5 and long.startswith(short) and len(long) - len(short) <= 4  # noqa: PLR2004  # subscrib(er)
