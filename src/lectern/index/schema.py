"""The shape of a collection: its name, its vectors, and which payload fields are indexed."""

from __future__ import annotations

import re

TENANT_FIELD = "book_id"
KEYWORD_FIELDS = (
    "module",
    "proficiency_level",
    "layer",
    "parent_doc_id",
    "content_hash",
    "source_file_hash",
)
HASH_FIELD = "content_hash"  # tells texts apart without reading them
INTEGER_FIELDS = ("chapter", "lesson", "hardware_tier")

DENSE = "dense"
LEXICAL = "lexical"


def collection_name(stem: str, fingerprint: str) -> str:
    """`{stem}-{fingerprint}`, in characters that every file system and server takes."""
    return f"{stem}-{re.sub(r'[^A-Za-z0-9._]+', '-', fingerprint)}"
