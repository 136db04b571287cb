"""Leases on books: who works on which book, and until when."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "book_leases",
        sa.Column("book_id", sa.String(64), primary_key=True),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("lock_key", sa.BigInteger, nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
    )
    reached("database.migrating")


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("book_leases")
