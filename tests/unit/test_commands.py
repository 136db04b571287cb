"""Commands on their way to a server."""

from __future__ import annotations

import json

import pytest

from lectern.app.command_handlers import _HANDLERS
from lectern.app.commands import COMMANDS, Ask, from_json, to_json
from lectern.domain.errors import BadInput
from lectern.domain.scope import Scope

ASK = Ask(text="What is a node?", scope=Scope(book_id="b", chapters=(None, 4), levels=("A1",)), top_k=3)


def test_a_command_arrives_as_it_was_sent() -> None:
    """Tuples and open ends of ranges survive JSON."""
    assert from_json("Ask", json.loads(json.dumps(to_json(ASK)))) == ASK


def test_every_command_has_a_handler() -> None:
    """What the terminal can make, a server can carry out."""
    assert set(_HANDLERS) == set(COMMANDS.values())


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("Fly", {}, "no command 'Fly'"),
        ("Ask", {"text": "x", "careful": True}, "no option 'careful'"),
        ("Ask", {"text": 3}, "text"),
        ("Ask", [], "Ask"),
    ],
)
def test_what_a_server_does_not_know_is_refused_in_words(name: str, body: object, says: str) -> None:
    """A newer version's option is never dropped without a word."""
    with pytest.raises(BadInput, match=says):
        from_json(name, body)
