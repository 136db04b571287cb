"""Which passages a model is given to read."""

from __future__ import annotations

from lectern.answering.ask import reading_passages
from tests.making import chunk, hit

STUB = hit(chunk("## Further reading"))
TASK = hit(chunk("## Exercises\n\nBuild a node that counts the messages on a topic."))
NODES, TOPICS = hit(chunk("A node is a process that computes.")), hit(chunk("Nodes talk to each other over topics."))


def test_stubs_and_exercises_are_not_handed_out() -> None:
    """Neither among the best hits nor among the further ones."""
    near = [STUB, NODES, TASK, TASK, TOPICS]

    assert reading_passages(near, near[:3], 5, 6_000) == [NODES, TOPICS]


def test_the_best_hits_are_handed_out_if_nothing_else_was_found() -> None:
    """A model decides by itself whether they answer."""
    assert reading_passages([STUB, TASK], [STUB, TASK], 5, 6_000) == [STUB, TASK]
