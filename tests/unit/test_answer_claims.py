"""The claims of an answer: what is judged, where it is, and what it cites."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lectern.grounding.answer_claims import AnswerClaim, claims_of
from lectern.text.markers import marker_spans

ANSWER = """\
# The pump

Yes. The pump starts at six [1]. It runs for 12 minutes. [2][3] Does it stop?

The garden has these beds:

- The north bed gets 8 litres [1].
- The south bed [2]
- basil

| Bed | Water |
|---|---|
| north | 8 l [1] |
| south | 4 l |

> The tank is never empty at night. [3]

Start it with this:

```bash
pump start --now
valves[0]
```
[2]

The book does not compare them. See lesson 4 for more.
"""


def only(answer: str) -> AnswerClaim:
    """The one claim of an answer."""
    [claim] = claims_of(answer)
    return claim


def test_claims_are_sentences_items_rows_quotes_and_listings() -> None:
    """Each kind is found, in order; headings, leads, `Yes.`, questions and words about the book are no claims."""
    claims = claims_of(ANSWER)

    assert [claim.kind for claim in claims] == [
        "sentence", "sentence", "item", "item", "item", "row", "row", "quote", "listing",
    ]  # fmt: skip
    assert [claim.bare for claim in claims][:2] == ["The pump starts at six.", "It runs for 12 minutes."]
    assert claims[-1].bare == "pump start --now\nvalves[0]"


def test_positions_are_exact() -> None:
    """`answer[start:end]` is the claim as it was written, with its markers, without list signs; a listing has its
    fences."""
    assert [ANSWER[claim.start : claim.end] for claim in claims_of(ANSWER)] == [
        "The pump starts at six [1].",
        "It runs for 12 minutes. [2][3]",
        "The north bed gets 8 litres [1].",
        "The south bed [2]",
        "basil",
        "| north | 8 l [1] |",
        "| south | 4 l |",
        "The tank is never empty at night. [3]",
        "```bash\npump start --now\nvalves[0]\n```\n[2]",
    ]


def test_a_claim_cites_what_stands_with_it_and_nothing_else() -> None:
    """A marker after the full stop belongs to the sentence before it; no claim inherits a marker from another."""
    assert [claim.citations for claim in claims_of(ANSWER)] == [
        (1,), (2, 3), (1,), (2,), (), (1,), (), (3,), (2,),
    ]  # fmt: skip
    assert [claim.citations for claim in claims_of("The pump starts at six. [1] The valve opens first.")] == [(1,), ()]
    assert only("The pump starts at six [1, 2].").citations == (1, 2)
    assert only("The pump reads `valves[0]` at six.").citations == ()


def test_items_are_judged_with_their_lead_and_rows_with_their_head() -> None:
    """An item or a row alone says nothing; a lead that only announces says nothing either."""
    texts = [claim.text for claim in claims_of(ANSWER)]

    assert "The garden has these beds: basil" in texts
    assert "Bed south, Water 4 l" in texts
    assert only("Here they are:\n\n- The valve opens first.").text == "The valve opens first."


@pytest.mark.parametrize(
    "text",
    [
        "Yes.",
        "No.",
        "## How the pump starts every day",
        "These are the steps of the pump:",
        "Does the pump start at six?",
        "The book does not compare them.",
        "The passages do not say how old the pump is.",
        "This is not covered in the book.",
        "The price is not mentioned in these passages.",
        "See the lesson on pumps.",
        "",
        "\n\n",
        "[1]",
        "```\n\n```",
        "---",
    ],
)
def test_what_states_nothing_about_the_subject_is_no_claim(text: str) -> None:
    """Such lines are shown and get no verdict."""
    assert claims_of(text) == []


@pytest.mark.parametrize(
    "text", ["The pump does not start at night.", "Only the gardener may change the text of the schedule."]
)
def test_a_negation_about_the_subject_is_a_claim(text: str) -> None:
    """Only what is said about the book itself is left out."""
    assert only(text).text == text


signs = st.text(alphabet="`~>[]()#*-|:.!? \n\t12ab,。水\\<", max_size=200)
lines = st.lists(
    st.sampled_from(
        [
            "The pump starts at six [1].", "It runs for 12 minutes. [2][3]", "- An item has words [1]",
            "  - Nested item [2]",
            "1. First step is this.", "| a | b |", "|---|---|", "| c [1] | d |", "> Quoted words are here. [3]", "```",
            "pump start [1]", "~~~", "", "## Heading [1]", "The steps of it are:", "Yes.", "    indented words here",
            "[1]",
        ]
    ),
    max_size=20,
).map("\n".join)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(signs | lines)
@example("> ```\n> x = 1\n> ```\n> [1]")
def test_positions_are_in_order_and_apart(answer: str) -> None:
    """For any text: claims follow each other without overlap, and each marker is at most one claim's, inside of it."""
    claims = claims_of(answer)

    assert all(0 <= claim.start < claim.end <= len(answer) for claim in claims)
    assert all(first.end <= second.start for first, second in pairwise(claims))
    owned = [span for claim in claims for span in claim.markers]
    assert len(owned) == len(set(owned))
    assert set(owned) <= set(marker_spans(answer))
    assert all(claim.start <= start < end <= claim.end for claim in claims for start, end in claim.markers)


@pytest.mark.parametrize(
    "sentence",
    [
        "The material is not magnetic [1].",
        "Light sources have no effect on the lamp [1].",
        "The guide rail is only 3 mm wide [1].",
        "See the torque limit of 90 Nm [1].",
        "Although the book does not say so, you must run the motor at 48 V [1].",
    ],
)
def test_what_only_sounds_like_a_word_about_the_book_is_a_claim(sentence: str) -> None:
    """A negation or a word such as `guide` does not keep a claim from being judged."""
    assert len(claims_of(sentence)) == 1
