"""Characters that a reader cannot see but a machine reads: direction overrides, zero-width spaces, tag characters,
variation selectors that can carry any bytes, controls that drive a terminal. They stay in the text, which is the
author's, and the report points at them."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_FLAG = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
)  # flags of England, Scotland, Wales are spelt with tags


def hidden_characters(text: str) -> tuple[int, str] | None:
    """The line of the first hidden character and a message on all of them; joiners that scripts need do not count."""
    if not _HIDDEN.search(text):
        return None
    found = list(_HIDDEN.finditer(_FLAG.sub(lambda flag: " " * len(flag[0]), text)))
    if not found:
        return None
    first = found[0]
    name = unicodedata.name(first[0], f"U+{ord(first[0]):04X}")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    message = f"the text holds a character that nobody sees ({name}){more}; remove it unless it is meant"
    return text.count("\n", 0, first.start()) + 1, message
