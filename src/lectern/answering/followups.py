"""A follow-up, made to stand alone. Without a model this is done by rules: a question that leans on the talk before it
("tell me more", "and in Python?", "why does it do that?") takes along what the talk is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lectern.domain.queries import QUERY_LENGTH
from lectern.domain.replies import Exchange

TURNS = 2  # questions that are taken along: one may lean itself, and three drown what is asked now (measured)
SHORT = 5  # words: a question this short rarely says all it means
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|they|them|their|theirs|this|that|these|those|he|she|him|her"
    r"|his|hers|there|then|such|same|former|"
    r"latter|previous|above|one|ones|else|both|either|another|other|others|more|again|instead|too|also|yes|no)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:and|but|or|so|also|then|what about|how about|what if|why not|tell me more|more|go on|continue|elaborate|"
    r"explain (?:more|further|that|it)|give (?:me )?(?:an? )?(?:another )?examples?"
    r"|(?:an? )?examples?|such as|like what|"
    r"in what way|how so|why|how|when|where|really|which one|are you sure|can you|could you)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[\w'.+#/-]*\w")


def leans(question: str) -> bool:
    """Whether a question needs the talk before it to be understood."""
    words = _WORDS.findall(question)
    return bool(_GOES_ON.match(question)) or len(words) <= SHORT or bool(_POINTS_BACK.search(question))


def standalone_by_rules(question: str, history: Sequence[Exchange]) -> str:
    """The question with what it leans on put before it."""
    if not history or not leans(question):
        return question
    topic = " ".join(one.question.strip() for one in history[-TURNS:])
    whole = f"{topic} {question.strip()}"
    most = QUERY_LENGTH[1]
    return whole if len(whole) <= most else f"{topic[: most - len(question) - 2]} {question.strip()}"[-most:]
