"""Count in how many chunks of a book each term occurs, and count the changes of the list of books.

Nothing is counted here: the first search of a book finds no lexicon and counts its chunks.
"""

import sqlalchemy as sa
from alembic import op

from lectern.domain.failpoints import reached

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

FUNCTION = """
CREATE FUNCTION lectern_count_book_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE book_changes SET version = version + 1;
    RETURN NULL;
END $$
"""
TRIGGER = """
CREATE TRIGGER lectern_book_change AFTER INSERT OR UPDATE OR DELETE ON books
FOR EACH STATEMENT EXECUTE FUNCTION lectern_count_book_change()
"""


def upgrade() -> None:
    """Create the tables. SQLite has one process, which knows of its own changes, so it needs no trigger."""
    op.add_column("lessons", sa.Column("terms", sa.LargeBinary))
    reached("database.migrating")
    op.create_table(
        "lexicons",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("book_id", sa.String(64), nullable=False),
        sa.Column("collection", sa.String(250), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.UniqueConstraint("book_id", "collection", name="lexicons_by_place"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "term_counts",
        sa.Column("lexicon", sa.Integer, sa.ForeignKey("lexicons.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("term", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    changes = op.create_table(
        "book_changes", sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False)
    )
    op.bulk_insert(changes, [{"version": 0}])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(FUNCTION)
        op.execute(TRIGGER)


def downgrade() -> None:
    """Remove them."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER lectern_book_change ON books")
        op.execute("DROP FUNCTION lectern_count_book_change")
    op.drop_table("book_changes")
    op.drop_table("term_counts")
    op.drop_table("lexicons")
    op.drop_column("lessons", "terms")
