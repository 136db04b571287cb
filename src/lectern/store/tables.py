"""The SQL tables. They use plain types that SQLite and PostgreSQL have, and JSON as text for columns that are read
whole. Threads have native types on PostgreSQL, because operators query that table themselves.

Keys and server secrets: a key's text is not stored, only its digest.

Conversations: a thread is named by its owner and its id together. For every other owner the same id is unknown, and can
be used. So on PostgreSQL id and owner are the primary key; other tables refer to `number`. Messages and turns that are
archived are in second tables of the same form.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from lectern.store.column_types import JsonObject, Moment, ThreadId

metadata = MetaData()

books = Table(
    "books",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("manifest", Text, nullable=False),  # JSON
    Column("source", Text, nullable=False),  # the folder it was last read from
    Column("bound", Integer, nullable=False, default=0),  # 0 or 1: a caller named that folder, not the operator
    Column("fingerprint", String(200), nullable=False),
    Column("collection_name", String(250), nullable=False),  # readers are served from it
    Column("last_full_ingest", String(30)),
    Column("last_incremental_update", String(30)),
    Column("epoch", Integer, nullable=False, default=0),  # counts committed replacements
)

lessons = Table(
    "lessons",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("collection", String(250), primary_key=True),  # two while a book is rebuilt for another embedder
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
    Column("generation", Integer, nullable=False),  # of the chunks that readers see
    Column("payload_digest", String(64), nullable=False),  # of those chunks, to tell when index and ledger disagree
    Column("terms", LargeBinary),  # its share of `term_counts`; NULL where an older version wrote the row
)

# In how many chunks of a book each term occurs, by collection: the sum of the lessons' own counts.
lexicons = Table(
    "lexicons",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("collection", String(250), nullable=False),
    Column("epoch", Integer, nullable=False),  # the book's epoch that it is of; another one means: count again
    Column("chunks", Integer, nullable=False),
    UniqueConstraint("book_id", "collection", name="lexicons_by_place"),
    sqlite_autoincrement=True,  # a number that comes again could meet the counts of another book
)

term_counts = Table(
    "term_counts",
    metadata,
    Column("lexicon", Integer, ForeignKey("lexicons.number", ondelete="CASCADE"), primary_key=True),
    Column("term", BigInteger, primary_key=True, autoincrement=False),  # 32 bits without a sign
    Column("chunks", Integer, nullable=False),
    sqlite_with_rowid=False,
)

# PostgreSQL counts here, by a trigger, every statement that changes `books`, whoever sent it.
book_changes = Table("book_changes", metadata, Column("version", BigInteger, primary_key=True, autoincrement=False))
api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("old_digest", String(64)),  # of the text before the last rotation
    Column("old_until", String(30)),  # the moment until which that text is valid
    Column("owner", String(120), nullable=False),
    Column("kind", String(12), nullable=False),
    Column("rights", Text, nullable=False),  # JSON
    Column("books", Text),  # JSON; NULL for all books
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
Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite increments only INTEGER columns

threads = Table(
    "conversation_threads",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("owner", String(120), nullable=False),
    Column("thread_id", ThreadId, nullable=False),
    Column("book_id", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("topic_summary", Text),
    Column("summary_by_model", Integer, nullable=False, server_default="0"),  # 0 or 1
    Column("metadata", JsonObject, nullable=False),
    Column("filters", Text, nullable=False),  # JSON
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("archived", Integer, nullable=False),  # 0 or 1
    Column("version", Integer, nullable=False),
    UniqueConstraint("owner", "thread_id", name="threads_by_owner"),
    sqlite_autoincrement=True,  # the number of a deleted thread is never used again
)


Index("lessons_by_parent", lessons.c.book_id, lessons.c.collection, lessons.c.parent_doc_id)

intents = Table(
    "intents",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("collection", String(250), nullable=False),
    Column("body", LargeBinary, nullable=False),  # compressed JSON: enough to apply the replacement again
    sqlite_autoincrement=True,  # a number is a generation: it must never be used twice
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=True),
    Column("book_id", String(64), nullable=False),
    Column("queued_at", String(30), nullable=False),
    Column("owner", String(120), nullable=False),
    Column("request", Text, nullable=False),  # JSON: the order, and whether a server or a command runs it
    Column("status", String(10), nullable=False),
    Column("report", Text, nullable=False),  # JSON: the job's figures
    Column("problems", Text, nullable=False),  # JSON: its warnings and errors, which lists leave out
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
    Column("request", Text, nullable=False),  # JSON: the order that was sent with the key
)
Index("job_keys_by_job", job_keys.c.job_id)

vectors = Table(
    "vectors",
    metadata,
    Column("key", String(64), primary_key=True),  # SHA-256 of fingerprint and embedded text
    Column("vector", LargeBinary, nullable=False),  # little-endian float32
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
        Column("transcript", Text, nullable=False, server_default="{}"),  # JSON: instructions and tool calls
    )


messages, archived_messages = _messages("messages"), _messages("archived_messages")
turns, archived_turns = _turns("turns"), _turns("archived_turns")

# Of live and archived turns: a turn that is archived keeps its feedback without being touched.
turn_feedback = Table(
    "turn_feedback",
    metadata,
    Column("thread", Number, ForeignKey("conversation_threads.number", ondelete="CASCADE"), primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("rating", String(4), nullable=False),
    Column("reason", String(20)),
    Column("comment", Text, nullable=False),
    Column("given_at", String(30), nullable=False),
)

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

book_leases = Table(
    "book_leases",
    metadata,
    Column("book_id", String(64), primary_key=True),
    Column("token", String(36), nullable=False),  # of the process that works on the book; another for every time
    Column("lock_key", BigInteger, nullable=False),  # of an advisory lock that ends with its connection
    Column("until", Float(53), nullable=False),  # seconds by the database's clock
)
