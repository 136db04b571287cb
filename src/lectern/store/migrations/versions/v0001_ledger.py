"""The ledger: books, lessons, intents, job numbers and the vector cache."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "books",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(200), nullable=False),
        sa.Column("collection_name", sa.String(250), nullable=False),
        sa.Column("last_full_ingest", sa.String(30)),
        sa.Column("last_incremental_update", sa.String(30)),
        sa.Column("epoch", sa.Integer, nullable=False),
    )
    op.create_table(
        "lessons",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("collection", sa.String(250), primary_key=True),
        sa.Column("source_file", sa.Text, primary_key=True),
        sa.Column("file_hash", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("module", sa.String(64), nullable=False),
        sa.Column("chapter", sa.Integer, nullable=False),
        sa.Column("lesson", sa.Integer, nullable=False),
        sa.Column("doubled_by", sa.Text),
        sa.Column("parent_doc_id", sa.String(36), nullable=False),
        sa.Column("chunk_ids", sa.Text, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
        sa.Column("ingested_at", sa.String(30), nullable=False),
        sa.Column("page_title", sa.Text, nullable=False),
        sa.Column("lesson_title", sa.Text, nullable=False),
        sa.Column("chapter_title", sa.Text, nullable=False),
        sa.Column("module_title", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("payload_digest", sa.String(64), nullable=False),
    )
    reached("database.migrating")
    op.create_index("lessons_by_parent", "lessons", ["book_id", "collection", "parent_doc_id"])
    op.create_table(
        "intents",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("collection", sa.String(250), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("queued_at", sa.String(30), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "vectors",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop them again."""
    for table in ("vectors", "jobs", "intents", "lessons", "books"):
        op.drop_table(table)
