"""What a key reads of its own conversations depends on its rights."""

from __future__ import annotations

import pytest

from tests.keys.conftest import QUESTION, Site


@pytest.mark.parametrize(
    ("key", "roles"),
    [
        ("alpha", ["system", "user", "assistant", "tool", "assistant"]),
        ("only-chat", ["user", "assistant"]),
    ],
)
def test_passages_and_instructions_need_their_rights(site: Site, key: str, roles: list[str]) -> None:
    """Tool calls have whole passages, which need `read`; the operator's instructions need `admin`."""
    question = {"message": QUESTION["alpha"], "book_id": "alpha"}
    thread_id = site.call("POST", "/chat/run", key, json=question).json()["session_id"]
    [turn] = site.call("GET", f"/threads/{thread_id}/export", key).json()["turns"]

    assert [message["role"] for message in turn["messages"]] == roles
    assert [message["seq"] for message in turn["messages"] if message["seq"]] == [1, 2]
