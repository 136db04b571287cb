"""Questions that ask what something is, and sentences that say it. A definition comes first in an answer, whatever else
a passage tells about the thing."""

from __future__ import annotations

import re

from lectern.text.words import stems

MOST_WORDS = 4  # of a term
_ASKED = re.compile(
    r"(?:what\s+(?:is|are)|what's|define|what\s+does)\s+(?:an?\s+|the\s+)?(?P<term>[\w.+#/'-]+(?:\s+[\w.+#/'-]+)*?)"
    r"(?:\s+(?:mean|stand\s+for))?\s*\?*",
    re.IGNORECASE,
)
_MEANING = re.compile(r"\s(?:mean|stand\s+for)\s*\?*$", re.IGNORECASE)
_RELATION = re.compile(
    r"\b(?:of|in|for|to|with|between|from|by|on|at|and|or|than|about|do|called|used)\b", re.IGNORECASE
)
_SAID = re.compile(
    r"(?:an?\s+|the\s+)?(?P<subject>[^.:;,()]{1,60}?)\s*(?:\((?P<short>[^)]{1,40})\))?\s*"
    r"(?:\b(?:is|are|means?|stands?\s+for|refers?\s+to|denotes?)\s+(?!not\b|also\b|called\b|used\b)|:\s)",
    re.IGNORECASE,
)


def term_asked(question: str) -> str | None:
    """What the question wants to have defined, if that is all it asks."""
    found = _ASKED.fullmatch(question.strip())
    if found is None:
        return None
    term = found["term"]
    meaning = question.lower().lstrip().startswith("what does")
    if (meaning and not _MEANING.search(question)) or _RELATION.search(term) or len(term.split()) > MOST_WORDS:
        return None
    return term


def defines(text: str, term: str) -> bool:
    """Whether a sentence says what the term is: `A **node** is …`, `The … Format (URDF) is …`, `**DDS**: …`."""
    found = _SAID.match(text.replace("*", "").replace("`", "").lstrip())
    if found is None:
        return False
    wanted, head = stems(term), stems(term.rsplit(maxsplit=1)[-1])
    subject, short = stems(found["subject"]), stems(found["short"] or "")
    return bool(wanted) and (short == wanted or (bool(head) and head <= subject <= wanted))
