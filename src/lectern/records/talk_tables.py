"""The tables of conversations. A thread is named by its owner and its id together: to every other owner the same id is
unknown, and free. Messages and turns have a second home, the archive, of the same shape."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from lectern.records.tables import metadata

Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only what it calls INTEGER

threads = Table(
    "conversation_threads",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("owner", String(120), nullable=False),
    Column("thread_id", String(36), nullable=False),
    Column("book_id", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("topic_summary", Text),
    Column("metadata", Text, nullable=False),  # JSON
    Column("filters", Text, nullable=False),  # JSON
    Column("created_at", String(30), nullable=False),
    Column("updated_at", String(30), nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("archived", Integer, nullable=False),  # 0 or 1
    Column("version", Integer, nullable=False),
    UniqueConstraint("owner", "thread_id", name="threads_by_owner"),
    sqlite_autoincrement=True,  # the number of a deleted thread is never given again
)
Index("idx_threads_updated", threads.c.updated_at.desc())
Index("idx_threads_created", threads.c.created_at.desc())
Index("threads_listed", threads.c.owner, threads.c.updated_at.desc(), threads.c.number.desc())


def _messages(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("thread", Number, ForeignKey("conversation_threads.number", ondelete="CASCADE"), primary_key=True),
        Column("seq", Integer, primary_key=True),
        Column("role", String(10), nullable=False),
        Column("content", Text, nullable=False),
        Column("timestamp", String(30), nullable=False),
        Column("confidence", Float),
    )


def _turns(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("thread", Number, ForeignKey("conversation_threads.number", ondelete="CASCADE"), primary_key=True),
        Column("number", Integer, primary_key=True),
        Column("run_id", String(36), nullable=False, unique=True),
        Column("refused", Integer, nullable=False),  # 0 or 1
        Column("standalone", Text, nullable=False),
        Column("reply", Text, nullable=False),  # JSON: as it was shown
        Column("look_ups", Text, nullable=False),  # JSON
    )


messages, archived_messages = _messages("messages"), _messages("archived_messages")
turns, archived_turns = _turns("turns"), _turns("archived_turns")

turn_log = Table(
    "turn_log",
    metadata,
    Column("run_id", String(36), primary_key=True),
    Column("owner", String(120), nullable=False),
    Column("thread_id", String(36), nullable=False),
    Column("question", Text, nullable=False),
    Column("state", String(12), nullable=False),
    Column("error", Text),
    Column("digest", String(64), nullable=False),
    Column("begun_at", String(30), nullable=False),
    Column("ended_at", String(30)),
)
Index("turn_log_by_thread", turn_log.c.owner, turn_log.c.thread_id)

leases = Table(
    "thread_leases",
    metadata,
    Column("owner", String(120), primary_key=True),
    Column("thread_id", String(36), primary_key=True),
    Column("run_id", String(36), nullable=False),
    Column("until", Float(53), nullable=False),  # seconds by the database's clock
)
