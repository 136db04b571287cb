"""The SQL tables: plain types that every database has, JSON as text where a column is only ever read whole."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

books = Table(
    "books",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("manifest", Text, nullable=False),  # JSON
    Column("source", Text, nullable=False),  # the folder it was last read from
    Column("bound", Integer, nullable=False, default=0),  # 0 or 1: a caller named that folder, not the operator
    Column("fingerprint", String(200), nullable=False),
    Column("collection_name", String(250), nullable=False),  # the one that readers are served from
    Column("last_full_ingest", String(30)),
    Column("last_incremental_update", String(30)),
    Column("epoch", Integer, nullable=False, default=0),  # counts committed replacements
)

lessons = Table(
    "lessons",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("collection", String(250), primary_key=True),  # two while a book is rebuilt beside itself
    Column("source_file", Text, primary_key=True),
    Column("file_hash", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("module", String(64), nullable=False),
    Column("chapter", Integer, nullable=False),
    Column("lesson", Integer, nullable=False),
    Column("doubled_by", Text),
    Column("parent_doc_id", String(36), nullable=False),
    Column("chunk_ids", Text, nullable=False),  # JSON
    Column("chunk_count", Integer, nullable=False),
    Column("ingested_at", String(30), nullable=False),
    Column("page_title", Text, nullable=False),
    Column("lesson_title", Text, nullable=False),
    Column("chapter_title", Text, nullable=False),
    Column("module_title", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("generation", Integer, nullable=False),  # of the chunks that readers are to see
    Column("payload_digest", String(64), nullable=False),  # of those chunks, to tell when index and ledger disagree
)
Index("lessons_by_parent", lessons.c.book_id, lessons.c.collection, lessons.c.parent_doc_id)

intents = Table(
    "intents",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("collection", String(250), nullable=False),
    Column("body", LargeBinary, nullable=False),  # compressed JSON: enough to carry the replacement out again
    sqlite_autoincrement=True,  # a number is a generation: it must never be given twice
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("queued_at", String(30), nullable=False),
    Column("owner", String(120), nullable=False),
    Column("request", Text, nullable=False),  # JSON: the order, and who carries it on
    Column("status", String(10), nullable=False),
    Column("report", Text, nullable=False),  # JSON: the job's figures
    Column("problems", Text, nullable=False),  # JSON: its warnings and errors, which no list needs
    Column("cancelling", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    sqlite_autoincrement=True,
)
Index("jobs_by_status", jobs.c.status)

job_keys = Table(
    "job_keys",
    metadata,
    Column("owner", String(120), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("job_id", Integer, ForeignKey("jobs.job_id", ondelete="CASCADE"), nullable=False),
    Column("request", Text, nullable=False),  # JSON: what was asked for with the key, in the caller's words
)
Index("job_keys_by_job", job_keys.c.job_id)

vectors = Table(
    "vectors",
    metadata,
    Column("key", String(64), primary_key=True),  # SHA-256 of fingerprint and embedded text
    Column("vector", LargeBinary, nullable=False),  # little-endian float32
)
