"""A thread as the design document shows it."""

from __future__ import annotations

from lectern.domain.threads import Message, Thread, ThreadHead
from lectern.schemas.threads import ConversationThread

EXAMPLE = {
    "thread_id": "550e8400-e29b-41d4-a716-446655440000",
    "messages": [
        {"role": "user", "content": "What is URDF?", "timestamp": "2025-12-17T14:20:00.000Z"},
        {
            "role": "assistant",
            "content": "URDF (Unified Robot Description Format) is an XML format for representing robot models...",
            "timestamp": "2025-12-17T14:20:02.150Z",
            "confidence": 0.91,
        },
        {"role": "user", "content": "Can you give an example?", "timestamp": "2025-12-17T14:21:00.000Z"},
    ],
    "created_at": "2025-12-17T14:20:00.000Z",
    "updated_at": "2025-12-17T14:21:00.000Z",
    "topic_summary": "Discussion about URDF robot description format and examples",
    "metadata": {"user_id": "user123", "tags": ["ros2", "urdf", "robotics"]},
}


def test_a_thread_reads_as_the_design_shows_it() -> None:
    """Every field of the document's example is there, under its name and with its value; ours come beside them."""
    messages = [Message(seq=place, **fields) for place, fields in enumerate(EXAMPLE["messages"], start=1)]
    head = ThreadHead(
        thread_id=EXAMPLE["thread_id"],
        book_id="physical-ai-robotics",
        title="What is URDF?",
        topic_summary=EXAMPLE["topic_summary"],
        metadata=EXAMPLE["metadata"],
        filters={},
        created_at=EXAMPLE["created_at"],
        updated_at=EXAMPLE["updated_at"],
        turn_count=1,
        archived=False,
        version=1,
    )
    view = ConversationThread.of(
        Thread(head=head, messages=tuple(messages), retrieval_history=(), earlier=None)
    ).model_dump()

    for name, value in EXAMPLE.items():
        if name != "messages":
            assert view[name] == value
    for expected, message in zip(EXAMPLE["messages"], view["messages"], strict=True):
        assert {name: message[name] for name in expected} == expected
