"""What something is: which questions ask for it, and which sentences say it."""

import pytest

from lectern.answering.definitions import defines, term_asked


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What is a node?", "node"),
        ("what is a ROS 2 node", "ROS 2 node"),
        ("What's URDF?", "URDF"),
        ("What are action servers?", "action servers"),
        ("What does URDF stand for?", "URDF"),
        ("What does QoS mean?", "QoS"),
        ("Define DDS", "DDS"),
        ("What is the capital of France?", None),
        ("What does a Jetson do?", None),
        ("What is the difference between a topic and a service?", None),
        ("What is it that makes robots walk so well today?", None),
        ("How do nodes communicate?", None),
    ],
)
def test_only_a_plain_what_is_asks_for_a_definition(question: str, term: str | None) -> None:
    """Relations, deeds and long questions want more than a definition."""
    assert term_asked(question) == term


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("A **node** is one participant in the ROS graph.", "node", True),
        ("A **node** is one participant in the ROS graph.", "ROS 2 node", True),
        ("The **Unified Robot Description Format** (URDF) is an XML file.", "URDF", True),
        ("**DDS**: Data Distribution Service, the standard.", "DDS", True),
        ("ROS 2 is a set of libraries.", "ROS 2 node", False),
        ("A camera node is a node with a camera.", "node", False),
        ("A node is not a process.", "node", False),
        ("Nodes do not need to know each other: they agree.", "node", False),
        ("Closed loops cannot be written in URDF.", "URDF", False),
    ],
)
def test_a_definition_has_the_term_as_its_subject(text: str, term: str, expected: bool) -> None:
    """A sentence about something else, or about a special kind, defines nothing."""
    assert defines(text, term) == expected
