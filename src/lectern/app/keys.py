"""The end of a key. First it opens nothing; then what it has under way is ended, here at once and in other processes
within about a second; and where the operator wants nothing of it kept, what it has said goes, and the key last, so that
whoever is broken off can begin again."""

from __future__ import annotations

from lectern.conversations.runs import Runs
from lectern.domain.keys import Key
from lectern.jobs.runner import Jobs
from lectern.store.keys import SqlKeys


async def revoke_key(key_id: str, keys: SqlKeys, runs: Runs, jobs: Jobs) -> Key:
    """Let a key open nothing, and end its runs and jobs. Its conversations stay, though nobody can read them."""
    key = await keys.revoke(key_id)
    await runs.end_all_of(key.owner)
    await jobs.cancel_all_of(key.owner)
    return key


async def delete_key(key_id: str, keys: SqlKeys, runs: Runs, jobs: Jobs) -> tuple[Key, int]:
    """The same, and nothing is left of it but an id that nobody gets again; how many conversations went."""
    key = await revoke_key(key_id, keys, runs, jobs)
    gone = await runs.conversations.threads.forget(key.owner)
    await jobs.records.forget_keys(key.owner)
    await keys.forget(key_id)
    return key, gone
