"""Revoking and deleting keys. The key is made invalid first. Then its runs and jobs are ended, here at once and in
other processes within about a second. If it is to be deleted, its conversations are deleted next and the key last, so
that an interrupted deletion can be repeated."""

from __future__ import annotations

from lectern.conversations.runs import Runs
from lectern.domain.keys import Key
from lectern.jobs.runner import Jobs
from lectern.store.keys import SqlKeys


async def revoke_key(key_id: str, keys: SqlKeys, runs: Runs, jobs: Jobs) -> Key:
    """Revoke a key, and end its runs and jobs. Its conversations stay, but nobody can read them."""
    key = await keys.revoke(key_id)
    await runs.end_all_of(key.owner)
    await jobs.cancel_all_of(key.owner)
    return key


async def delete_key(key_id: str, keys: SqlKeys, runs: Runs, jobs: Jobs) -> tuple[Key, int]:
    """Revoke a key and delete everything of it except its id, which nobody gets again; returns how many conversations
    were deleted."""
    key = await revoke_key(key_id, keys, runs, jobs)
    deleted_threads = await runs.conversations.threads.forget(key.owner)
    await jobs.records.forget_keys(key.owner)
    await keys.forget(key_id)
    return key, deleted_threads
