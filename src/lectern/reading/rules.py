"""What the reader promises to itself: its limits, and the version that says when chunks could come out differently."""

from __future__ import annotations

from dataclasses import asdict, dataclass

READER_VERSION = "3"
"""Part of every lesson's digest. Bump it whenever a change in this package could give any file other chunks, titles,
places or URLs than before: every lesson is then read again on the next run; texts that stayed keep their vectors."""

LEXICAL_VERSION = "1"
"""Part of every lesson's digest, like the book's language. Bump it whenever `index/lexical.py` could give any text
other terms than before. It stands here because the reader, which makes the digest, cannot see the index."""

_ONLY_REFUSE = frozenset({"max_file_bytes", "max_lines", "max_markup"})  # a file they let pass is read the same


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """Sizes and bounds. The defaults are the design's; another value is a planned re-reading of the book."""

    max_file_bytes: int = 5 * 1024 * 1024
    max_lines: int = 50_000  # what markdown-it reads in about a second; a lesson has a few hundred
    max_markup: int = 100_000  # tags and comments; the same second
    max_front_matter_bytes: int = 64 * 1024
    target_tokens: int = 400
    short_tokens: int = 80  # sections below this may share a chunk with their neighbours
    max_chars: int = 4000  # scripts without spaces have few "words": no chunk grows beyond this
    min_chars: int = 10

    @property
    def fingerprint(self) -> str:
        """Everything here that could change a lesson's chunks."""
        sizes = {name: value for name, value in asdict(self).items() if name not in _ONLY_REFUSE}
        return f"{READER_VERSION}:{sorted(sizes.items())}"


DEFAULT_RULES = ReadingRules()
