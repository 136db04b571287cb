"""Store every idempotency key of a job, not only its first, and whether a caller or the operator chose a folder."""

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
    """Move the keys to a separate table, and mark the books that came in over HTTP."""
    op.add_column("books", sa.Column("bound", sa.Integer, nullable=False, server_default="0"))
    _bind()
    job_keys = op.create_table(
        "job_keys",
        sa.Column("owner", sa.String(120), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.job_id", ondelete="CASCADE"), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
    )
    op.create_index("job_keys_by_job", "job_keys", ["job_id"])
    reached("database.migrating")
    keyed = op.get_bind().execute(sa.select(JOBS).where(JOBS.c.idempotency_key.is_not(None)))
    op.bulk_insert(job_keys, [_key(row) for row in keyed])
    op.drop_index("jobs_once", "jobs")
    op.drop_column("jobs", "idempotency_key")


def _bind() -> None:
    """Mark the books whose folder was first named in a request."""
    first: dict[tuple[str, str], bool] = {}
    for job in op.get_bind().execute(sa.select(JOBS).order_by(JOBS.c.job_id)):
        order = _read(job.request)
        first.setdefault((job.book_id, order.get("folder", "")), order.get("source") is not None)
    for (book_id, folder), by_caller in first.items():
        if by_caller:
            row = (BOOKS.c.book_id == book_id) & (BOOKS.c.source == folder)
            op.execute(sa.update(BOOKS).where(row).values(bound=1))


def _read(request: str) -> dict[str, Any]:
    """The order in a row; empty if the row is damaged, because one damaged job must not stop the migration."""
    try:
        order = json.loads(request)
    except ValueError:
        return {}
    return order if isinstance(order, dict) else {}


def _key(row: sa.Row[tuple[object, ...]]) -> dict[str, object]:
    order = json.dumps({**_read(row.request), "book_id": row.book_id})
    return {"owner": row.owner, "key": row.idempotency_key, "job_id": row.job_id, "request": order}


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
