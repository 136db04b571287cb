"""What a reader sees of a file, found without the reader's own code: plain regular expressions over the raw text."""

from __future__ import annotations

import re
from collections import Counter

_FRONT = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(
    r"^(?:[ \t>*+-]*|[ \t]*\d+[.)][ \t]+)(`{3,}|~{3,}).*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_COMMENT = re.compile(r"<!--.*?-->|\{/\*.*?\*/\}", re.DOTALL)
_COMPONENT = re.compile(r"^<[A-Z]\w*$.*?^/>$", re.DOTALL | re.MULTILINE)  # a component over many lines, such as a quiz
_RIM = re.compile(r"^[ \t>]*(?::::+[ \t]*[\w-]+|(?:!!!|\?\?\?\+?)[ \t]+[\w-]+)", re.MULTILINE)  # the kind of a box
_DEFINITION = re.compile(r"^ {0,3}\[[^\]^\n]+\]:[ \t]*\S+[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*?>")
_SCRIPT = re.compile(r"^(?:import .* from .*|export .*)$", re.MULTILINE)
_CODE = re.compile(r"(`+[^`]*`+)")
_WORD = re.compile(r"\w+")


def seen_words(raw: str) -> Counter[str]:
    """Words outside front matter, imports, tags, comments, kinds of boxes and definitions of links."""
    text = _FRONT.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"), count=1)
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_prose(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return words_in(" ".join([*parts, _prose(text[at:])]))


def words_in(text: str) -> Counter[str]:
    """A text's words, counted."""
    return Counter(_WORD.findall(text))


def _prose(text: str) -> str:
    text = _DEFINITION.sub(" ", _RIM.sub(" ", _COMPONENT.sub(" ", _COMMENT.sub(" ", text))))
    spans = _CODE.split(text)
    return _SCRIPT.sub(" ", "".join(span if span.startswith("`") else _TAG.sub(" ", span) for span in spans))
