"""Store readers' feedback on turns."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of feedback."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    thread = sa.ForeignKey("conversation_threads.number", ondelete="CASCADE")
    reached("database.migrating")
    op.create_table(
        "turn_feedback",
        sa.Column("thread", number, thread, primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("rating", sa.String(4), nullable=False),
        sa.Column("reason", sa.String(20)),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("given_at", sa.String(30), nullable=False),
    )


def downgrade() -> None:
    """Remove the table, and all feedback with it."""
    op.drop_table("turn_feedback")
