"""The order in which files are tested: the longest first, so that at the end no worker is left alone with one."""

from __future__ import annotations

LONGEST_FIRST = (  # by what they took in a whole run; a file that is not named comes after them
    "answering/test_streaming.py",
    "scaling/test_topology.py",
    "cli/test_commands.py",
    "crash/test_kills.py",
    "properties/test_histories.py",
    "api/test_operations.py",
    "web/test_widget.py",
    "cli/test_ingest_signals.py",
    "jobs/test_routes.py",
    "api/test_traces.py",
    "keys/test_revoking.py",
    "web/test_layout.py",
    "scaling/test_backup.py",
    "answering/test_real_model.py",
    "cli/test_terminal.py",
    "cli/test_chat.py",
    "test_fresh_clone.py",
    "web/test_faults.py",
    "web/test_desk.py",
    "contracts/test_database_outages.py",
    "unit/reading/test_hostile.py",
    "crash/test_conversation_kills.py",
    "api/test_fuzz.py",
    "scaling/test_upgrade.py",
    "soak/test_soak.py",
    "api/test_streams.py",
    "properties/test_lesson_pages.py",
    "answering/test_model.py",
    "ingestion/test_full_disk.py",
    "contracts/test_cluster.py",
)


def place_of(file: str) -> int:
    """The place of a file of tests, named from their folder, in the order."""
    return LONGEST_FIRST.index(file) if file in LONGEST_FIRST else len(LONGEST_FIRST)
