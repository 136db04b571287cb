"""The tables of keys, and of the secrets that a server makes for itself. A key's text is nowhere: only its digest."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, Text

from lectern.records.tables import metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("old_digest", String(64)),  # of the text before the last rotation
    Column("old_until", String(30)),  # the moment until which that text still opens
    Column("owner", String(120), nullable=False),
    Column("kind", String(12), nullable=False),
    Column("rights", Text, nullable=False),  # JSON
    Column("books", Text),  # JSON; none for all
    Column("origins", Text, nullable=False),  # JSON
    Column("created_at", String(30), nullable=False),
    Column("expires_at", String(30)),
    Column("revoked_at", String(30)),
    Column("last_used_at", String(30)),
)

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", String(100), nullable=False),
)
