"""Turns in the database can always be read and sent on, whatever a model wrote."""

from __future__ import annotations

import json

from lectern.store import turn_bodies


def test_half_a_character_in_an_old_row_can_be_read() -> None:
    """A row that an older version stored with half a character reads with a replacement in its place; a whole pair
    stays what it is, and so does every other text."""
    whole, half = "\U0001f916 Größe", "robot \ud83e"
    reply = turn_bodies.read_object(json.dumps({"response": half, "nested": [{half: whole}]}))

    json.dumps(reply, ensure_ascii=False).encode()
    assert reply["response"].startswith("robot ")
    assert reply["nested"] == [{"robot ?": whole}]
    assert turn_bodies.read_object(json.dumps({"response": whole})) == {"response": whole}
