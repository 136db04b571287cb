"""Store whether a language model wrote a thread's summary, so that phrases from the questions do not replace it."""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; older summaries count as phrases."""
    reached("database.migrating")
    op.add_column("conversation_threads", sa.Column("summary_by_model", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("conversation_threads", "summary_by_model")
