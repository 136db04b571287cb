"""How Alembic runs here: inside the connection, and so the transaction, that `open_database` hands it."""

from alembic import context

from lectern.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
