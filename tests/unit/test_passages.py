"""What `lectern search` shows of a passage."""

import re

from hypothesis import given
from hypothesis import strategies as st

from lectern.cli.search import PASSAGE_LENGTH, passage
from lectern.index.lexical import shared_words

STYLE = re.compile(r"\x1b\[\d+m")


def bare(marked: str) -> str:
    """Without the marks."""
    return STYLE.sub("", marked)


def test_the_matching_words_are_marked_and_in_sight() -> None:
    """However long the passage, what is shown is where the words stand."""
    text = "Filler text comes first. " * 60 + "The lidar driver publishes a scan. " + "More of it follows. " * 60
    excerpt = passage(text, shared_words(text, "lidar drivers", "en"))

    assert "lidar" in bare(excerpt)
    assert "\x1b" in excerpt
    assert len(bare(excerpt)) <= PASSAGE_LENGTH + 4


@given(st.text(alphabet="abc de.\n", max_size=900), st.text(alphabet="abc de", max_size=20))
def test_a_shown_passage_is_short_and_of_the_text(text: str, query: str) -> None:
    """At most so many characters, word for word, on one line."""
    excerpt = bare(passage(text, shared_words(text, query, "en")))

    assert len(excerpt) <= PASSAGE_LENGTH + 4
    assert "\n" not in excerpt
    assert excerpt.removeprefix("… ").removesuffix(" …") in " ".join(text.split())


def test_identifiers_versions_and_forms_are_recognised() -> None:
    """`cmd_vel` is one word and its parts; plurals meet singulars; versions are words."""
    text = "Publish Twist messages on cmd_vel with rclpy.spin in version 2.4.1 of C++ nodes."

    def marked(query: str) -> list[str]:
        return [text[begin:end] for begin, end in shared_words(text, query, "en")]

    assert marked("cmd_vel") == ["cmd_vel"]
    assert marked("message node") == ["messages", "nodes"]
    assert "rclpy.spin" in marked("rclpy.spin")
    assert "2.4.1" in marked("2.4.1")
