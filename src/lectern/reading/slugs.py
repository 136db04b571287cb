"""Slugs: lower-case letters of any script, digits and hyphens, at most 64. No colon can enter an id through one."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache

MAX_SLUG = 64


@lru_cache(maxsize=4096)  # a book has few names and asks for them often
def slugged(name: str) -> str:
    """The slug of any name; a name without a letter or digit gets one made of its hash, so none is ever empty."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    out: list[str] = []
    for char in plain:
        if char.isdecimal() or (char.isalpha() and not char.isupper()):
            out.append(char)
        elif not unicodedata.category(char).startswith("M") and out and out[-1] != "-":
            out.append("-")
    slug = "".join(out).strip("-")
    if not slug:
        return f"x-{_mark(name)}"
    if len(slug) > MAX_SLUG:  # cut names would meet; the hash keeps them apart
        return f"{slug[: MAX_SLUG - 9].rstrip('-')}-{_mark(name)}"
    return slug


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
