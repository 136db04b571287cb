"""Messages that ask nothing of the book: greetings, thanks, "who are you?", "what can I ask you?". The whole message
has to be one; "hi, what is a node?" is a question."""

from __future__ import annotations

import re
from typing import Literal

SmallTalk = Literal["greeting", "thanks", "farewell", "identity", "help"]


def _one_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_ADDRESS = r"(?:[ ,]+(?:there|lectern|all|everyone|again|today|friend|bot|zusammen|nochmal))*"
_GREETING = _one_of(
    "hi+|hello+|hey+|hiya|howdy|greetings|good (?:morning|evening|afternoon|day)",
    "how are you(?: doing)?|how is it going|how do you do|what'?s up",
    "hallo|moin|servus|guten (?:morgen|tag|abend)|grüß (?:dich|gott)|wie geht(?:'?s| es (?:dir|ihnen))",
)
_THANKS = _one_of(
    "(?:(?:many|ok|okay|great|perfect),? )?(?:thanks?|thank (?:you|u)|thx|ty|cheers)"
    "(?: (?:a lot|so much|very much|a million|you|for (?:your|the) (?:help|answers?)))*",
    "(?:vielen |herzlichen )?danke?(?: (?:schön|sehr|dir|ihnen))?|alles klar|super|prima",
    "ok|okay|great|cool|nice|perfect|awesome|got it|i see|well done|lol|good(?: job| answer)?",
    "that(?:'s| is| was)? (?:helpful|helped|great|all|perfect)(?: a lot)?",
)
_FAREWELL = _one_of(
    "bye(?:[ -]bye)?|good ?bye|see (?:you|ya)(?: later| soon)?|good night", "ciao|tschüss|auf wiedersehen|bis bald"
)
_IDENTITY = _one_of(
    "who are you|what are you|what(?: is|'?s) your name|who (?:made|built|created) you|introduce yourself",
    "are you (?:an? )?(?:bot|robot|human|ai|real|person|machine|chatbot|chatgpt|llm)",
    "wer bist du|wer sind sie|was bist du",
)
_HELP = _one_of(
    "help(?: me)?|can you help(?: me)?|i need (?:some )?help|how (?:can|do) you help(?: me)?",
    "what can you do(?: for me)?|how do you work|how do i use you|what do you know",
    "what (?:can|could|should|may|do) i ask(?: you| here)?(?: about)?",
    "what (?:questions|kind of questions|sort of things) can i ask(?: you)?",
    "hilfe|was kannst du|was können sie|was kann ich (?:dich |sie )?fragen",
)
_SHAPES: dict[SmallTalk, re.Pattern[str]] = {
    "identity": re.compile(rf"\W*(?:{_GREETING}{_ADDRESS}\W+)?{_IDENTITY}{_ADDRESS}\W*", re.IGNORECASE),
    "help": re.compile(rf"\W*(?:{_GREETING}{_ADDRESS}\W+)?{_HELP}{_ADDRESS}\W*", re.IGNORECASE),
    "farewell": re.compile(rf"\W*(?:{_THANKS}\W+)?{_FAREWELL}{_ADDRESS}\W*", re.IGNORECASE),
    "thanks": re.compile(rf"\W*{_THANKS}(?:\W+{_THANKS})?{_ADDRESS}\W*", re.IGNORECASE),
    "greeting": re.compile(rf"\W*{_GREETING}{_ADDRESS}(?:\W+{_GREETING}{_ADDRESS})?\W*", re.IGNORECASE),
}


def small_talk(message: str) -> SmallTalk | None:
    """The kind of small talk that a message is, or None."""
    return next((kind for kind, shape in _SHAPES.items() if shape.fullmatch(message.replace("’", "'"))), None)
