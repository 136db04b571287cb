"""Give conversations their native types on PostgreSQL: UUID, JSONB and timestamptz. SQLite has no such types.

Each row of a thread is named by its id and its owner together, which are the primary key: for another owner the same id
is unknown, and may be used. Rows of other tables refer to `number`."""

import json

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE = "conversation_threads"
REFERRING = ("messages", "archived_messages", "turns", "archived_turns", "turn_feedback")
MOMENTS = ("created_at", "updated_at")


def upgrade() -> None:
    """Convert the columns, with the values that they have."""
    reached("database.migrating")
    if op.get_bind().dialect.name != "postgresql":
        return
    _mend_metadata()
    _alter("thread_id", "UUID", "thread_id::uuid")
    _alter("metadata", "JSONB", "metadata::jsonb")
    op.execute(f"ALTER TABLE {TABLE} ALTER COLUMN metadata SET DEFAULT '{{}}'::jsonb")
    for name in MOMENTS:
        _alter(name, "TIMESTAMPTZ(3)", f"{name}::timestamptz")
        op.execute(f"ALTER TABLE {TABLE} ALTER COLUMN {name} SET DEFAULT now()")
    _replace_key(primary=("thread_id", "owner"), unique=("number",), unique_name="threads_by_number")


def downgrade() -> None:
    """Convert the columns back to text."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for name in ("metadata", *MOMENTS):
        op.execute(f"ALTER TABLE {TABLE} ALTER COLUMN {name} DROP DEFAULT")
    for name in MOMENTS:
        written = f"""to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
        _alter(name, "VARCHAR(30)", written)
    _alter("metadata", "TEXT", "metadata::text")
    _alter("thread_id", "VARCHAR(36)", "thread_id::text")
    _replace_key(primary=("number",), unique=("owner", "thread_id"), unique_name="threads_by_owner")


def _alter(column: str, kind: str, expression: str) -> None:
    op.execute(f"ALTER TABLE {TABLE} ALTER COLUMN {column} TYPE {kind} USING {expression}")


def _mend_metadata() -> None:
    """Replace what JSONB cannot hold: NUL characters, and rows that are no JSON object."""
    threads = sa.table(TABLE, sa.column("number"), sa.column("metadata"))
    for row in op.get_bind().execute(sa.select(threads)).all():
        try:
            fields = json.loads(row.metadata)
        except ValueError:
            fields = None
        body = json.dumps(fields if isinstance(fields, dict) else {})
        body = body.replace("\\\\", "\0").replace("\\u0000", "\\ufffd").replace("\0", "\\\\")
        if body != row.metadata:
            op.execute(sa.update(threads).where(threads.c.number == row.number).values(metadata=body))


def _replace_key(*, primary: tuple[str, ...], unique: tuple[str, ...], unique_name: str) -> None:
    """Change the primary key. What refers to the table's `number` needs it to be unique, so it is tied up again."""
    former = "threads_by_owner" if unique_name == "threads_by_number" else "threads_by_number"
    for name in REFERRING:
        op.drop_constraint(f"{name}_thread_fkey", name)
    op.drop_constraint(f"{TABLE}_pkey", TABLE)
    op.drop_constraint(former, TABLE)
    op.create_primary_key(f"{TABLE}_pkey", TABLE, list(primary))
    op.create_unique_constraint(unique_name, TABLE, list(unique))
    for name in REFERRING:
        op.create_foreign_key(f"{name}_thread_fkey", name, TABLE, ["thread"], ["number"], ondelete="CASCADE")
