"""What was asked for: every key that a job was asked for with, not only its first, and whose choice a folder was."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BOOKS = sa.table("books", *map(sa.column, ("book_id", "source", "bound")))
JOBS = sa.table("jobs", *map(sa.column, ("job_id", "book_id", "owner", "request", "idempotency_key")))


def upgrade() -> None:
    """Move the keys to a table of their own, and find out which books came in over HTTP."""
    op.add_column("books", sa.Column("bound", sa.Integer, nullable=False, server_default="0"))
    _bind()
    kept = op.create_table(
        "job_keys",
        sa.Column("owner", sa.String(120), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
    )
    op.create_index("job_keys_by_job", "job_keys", ["job_id"])
    reached("database.migrating")
    keyed = op.get_bind().execute(sa.select(JOBS).where(JOBS.c.idempotency_key.is_not(None)))
    op.bulk_insert(kept, [_key(row) for row in keyed])
    op.drop_index("jobs_once", "jobs")
    op.drop_column("jobs", "idempotency_key")


def _bind() -> None:
    """A book is a caller's whose folder was first named in a request."""
    first: dict[tuple[str, str], bool] = {}
    for job in op.get_bind().execute(sa.select(JOBS).order_by(JOBS.c.job_id)):
        asked = _read(job.request)
        first.setdefault((job.book_id, asked.get("folder", "")), asked.get("source") is not None)
    for (book_id, folder), named in first.items():
        if named:
            mine = (BOOKS.c.book_id == book_id) & (BOOKS.c.source == folder)
            op.execute(sa.update(BOOKS).where(mine).values(bound=1))


def _read(request: str) -> dict[str, Any]:
    """What was asked for; nothing where a row is damaged, because a job that cannot be read must not lock a home."""
    try:
        asked = json.loads(request)
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def _key(row: sa.Row[tuple[object, ...]]) -> dict[str, object]:
    asked = json.dumps({**_read(row.request), "book_id": row.book_id})
    return {"owner": row.owner, "key": row.idempotency_key, "job_id": row.job_id, "request": asked}


def downgrade() -> None:
    """Give every job its first key back."""
    op.drop_column("books", "bound")
    op.add_column("jobs", sa.Column("idempotency_key", sa.String(255)))
    op.execute(
        "UPDATE jobs SET idempotency_key ="
        " (SELECT min(key) FROM job_keys WHERE job_keys.job_id = jobs.job_id AND job_keys.owner = jobs.owner)"
    )
    op.create_index("jobs_once", "jobs", ["owner", "idempotency_key"], unique=True)
    op.drop_table("job_keys")
