"""The sizes and limits of the reader, and the versions that change when its chunks could change."""

from __future__ import annotations

from dataclasses import asdict, dataclass

READER_VERSION = "3"
"""Part of every lesson's digest. Bump it whenever a change in this package could give any file other chunks, titles,
places or URLs than before: every lesson is then read again on the next run; texts that stayed keep their vectors."""

LEXICAL_VERSION = "1"
"""Part of every lesson's digest, like the book's language. Bump it whenever `index/lexical.py` could give any text
other terms than before. It is defined here because the reader makes the digest and cannot import the index."""

_ONLY_REFUSE = frozenset({"max_file_bytes", "max_lines", "max_markup"})  # they do not change how a file is read


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """Sizes and limits. If a size of chunks or front matter changes, every lesson is read again."""

    max_file_bytes: int = 5 * 1024 * 1024
    max_lines: int = 50_000  # markdown-it reads them in about a second; a lesson has a few hundred
    max_markup: int = 100_000  # tags and comments, also about a second
    max_front_matter_bytes: int = 64 * 1024
    target_tokens: int = 400
    short_tokens: int = 80  # sections below this may share a chunk with their neighbours
    max_chars: int = 4000  # a limit for scripts without spaces, which have few "words"
    min_chars: int = 10

    @property
    def fingerprint(self) -> str:
        """The version and all values that could change the chunks of a lesson."""
        sizes = {name: value for name, value in asdict(self).items() if name not in _ONLY_REFUSE}
        return f"{READER_VERSION}:{sorted(sizes.items())}"


DEFAULT_RULES = ReadingRules()
