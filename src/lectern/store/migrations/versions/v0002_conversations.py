"""Conversations, keys, and jobs that outlive their process."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _job_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("owner", sa.String(120), nullable=False, server_default="local"),
        sa.Column("request", sa.Text, nullable=False, server_default="{}"),
        sa.Column("status", sa.String(10), nullable=False, server_default="completed"),
        sa.Column("report", sa.Text, nullable=False, server_default="{}"),
        sa.Column("problems", sa.Text, nullable=False, server_default="[]"),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("cancelling", sa.Integer, nullable=False, server_default="0"),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    ]


def upgrade() -> None:
    """Create the tables of conversations and keys, and add the columns of jobs."""
    _threads()
    reached("database.migrating")
    _logs()
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("old_digest", sa.String(64)),
        sa.Column("old_until", sa.String(30)),
        sa.Column("owner", sa.String(120), nullable=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("rights", sa.Text, nullable=False),
        sa.Column("books", sa.Text),
        sa.Column("origins", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(30), nullable=False),
        sa.Column("expires_at", sa.String(30)),
        sa.Column("revoked_at", sa.String(30)),
        sa.Column("last_used_at", sa.String(30)),
    )
    op.create_table(
        "server_secrets",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.String(100), nullable=False),
    )
    for column in _job_columns():
        op.add_column("jobs", column)
    op.create_index("jobs_by_status", "jobs", ["status"])
    op.create_index("jobs_once", "jobs", ["owner", "idempotency_key"], unique=True)


def _threads() -> None:
    op.create_table(
        "conversation_threads",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.String(120), nullable=False),
        sa.Column("thread_id", sa.String(36), nullable=False),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("topic_summary", sa.Text),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("filters", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(30), nullable=False),
        sa.Column("updated_at", sa.String(30), nullable=False),
        sa.Column("turn_count", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("archived", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.UniqueConstraint("owner", "thread_id", name="threads_by_owner"),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_threads_updated", "conversation_threads", [sa.text("updated_at DESC")])
    op.create_index("idx_threads_created", "conversation_threads", [sa.text("created_at DESC")])
    op.create_index(
        "threads_listed", "conversation_threads", ["owner", sa.text("updated_at DESC"), sa.text("number DESC")]
    )
    for name in ("messages", "archived_messages"):
        op.create_table(
            name,
            sa.Column(
                "thread", NUMBER, sa.ForeignKey("conversation_threads.number", ondelete="CASCADE"), primary_key=True
            ),
            sa.Column("seq", sa.Integer, primary_key=True),
            sa.Column("role", sa.String(10), nullable=False),
            sa.Column("content", sa.Text, nullable=False),
            sa.Column("timestamp", sa.String(30), nullable=False),
            sa.Column("confidence", sa.Float),
        )
    for name in ("turns", "archived_turns"):
        op.create_table(
            name,
            sa.Column(
                "thread", NUMBER, sa.ForeignKey("conversation_threads.number", ondelete="CASCADE"), primary_key=True
            ),
            sa.Column("number", sa.Integer, primary_key=True),
            sa.Column("run_id", sa.String(36), nullable=False, unique=True),
            sa.Column("refused", sa.Integer, nullable=False),
            sa.Column("standalone", sa.Text, nullable=False),
            sa.Column("reply", sa.Text, nullable=False),
            sa.Column("look_ups", sa.Text, nullable=False),
        )


def _logs() -> None:
    op.create_table(
        "turn_log",
        sa.Column("run_id", sa.String(36), primary_key=True),
        sa.Column("owner", sa.String(120), nullable=False),
        sa.Column("thread_id", sa.String(36), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("begun_at", sa.String(30), nullable=False),
        sa.Column("ended_at", sa.String(30)),
    )
    op.create_index("turn_log_by_thread", "turn_log", ["owner", "thread_id"])
    op.create_table(
        "thread_leases",
        sa.Column("owner", sa.String(120), primary_key=True),
        sa.Column("thread_id", sa.String(36), primary_key=True),
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
    )


def downgrade() -> None:
    """Drop them again."""
    op.drop_index("jobs_once", "jobs")
    op.drop_index("jobs_by_status", "jobs")
    with op.batch_alter_table("jobs") as table:
        for column in _job_columns():
            table.drop_column(column.name)
    tables = "server_secrets api_keys thread_leases turn_log archived_turns turns archived_messages messages"
    for name in (*tables.split(), "conversation_threads"):
        op.drop_table(name)
