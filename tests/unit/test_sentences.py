"""Sentences of Markdown passages, verbatim."""

from hypothesis import given
from hypothesis import strategies as st

from lectern.text.pieces import sentences_of

PASSAGE = """\
## Nodes and topics

A node is a process. It publishes to **topics**, e.g. `/cmd_vel`, at 10.5 Hz.

- Publishers do not know their subscribers.
- [x] Done tasks count too.

```python
# this is not a sentence. Nor is this.
```

| a | b |
|---|---|
| not a | sentence either. |

:::tip
Use `ros2 topic list` to see them all. Is that all?
:::
"""


def test_prose_is_split_and_the_rest_left_out() -> None:
    """Headings, code, tables, markers and questions to the reader are no statements; bullets lose their mark."""
    assert sentences_of(PASSAGE) == [
        "A node is a process.",
        "It publishes to **topics**, e.g. `/cmd_vel`, at 10.5 Hz.",
        "Publishers do not know their subscribers.",
        "Done tasks count too.",
        "Use `ros2 topic list` to see them all.",
    ]


def test_a_sentence_over_two_lines_is_one() -> None:
    """A line break inside a paragraph is a blank, as a renderer shows it."""
    assert sentences_of("The first half\nand the second half.") == ["The first half and the second half."]


@given(st.text(max_size=400))
def test_a_sentence_is_made_of_the_passages_own_words(text: str) -> None:
    """Nothing is added: every word of a sentence stands in the passage."""
    words = set(text.split())

    assert all(set(sentence.split()) <= words | {w.lstrip(">-*+") for w in words} for sentence in sentences_of(text))


def test_tasks_set_to_the_reader_are_no_statements() -> None:
    """What stands under Exercises or Try it tells the reader to do something; the next heading ends that."""
    text = "## Exercises\n\nWrite a best effort publisher.\n\n## Summary\n\nA publisher offers what it can."

    assert sentences_of(text) == ["A publisher offers what it can."]
