"""Store the instructions and the tool calls of each turn."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = ("turns", "archived_turns")


def upgrade() -> None:
    """Add the column; older turns have an empty transcript."""
    for name in TABLES:
        op.add_column(name, sa.Column("transcript", sa.Text, nullable=False, server_default="{}"))
        reached("database.migrating")


def downgrade() -> None:
    """Remove the column."""
    for name in TABLES:
        op.drop_column(name, "transcript")
