"""The claims of an answer: what is judged, where it is, and what it cites."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lectern.grounding.answer_claims import AnswerClaim, claims_of, only_denies
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
    assert only("The pump starts at six [1][2].").citations == (1, 2)
    assert only("The pump reads `valves[0]` at six.").citations == ()


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        (
            "- The pump starts at six.\n- [1] The dose is 8 litres.\n- [2][3] The tank has a lid.\n",
            {
                "The pump starts at six.": (),
                "[1] The dose is 8 litres.": (1,),
                "[2][3] The tank has a lid.": (2, 3),
            },
        ),
        (
            "1. The pump starts at six. [1]\n2. [2] The dose is 8 litres. It never changes. [3]\n",
            {"The pump starts at six. [1]": (1,), "[2] The dose is 8 litres.": (2,), "It never changes. [3]": (3,)},
        ),
        (
            "> The tank has a lid. [1]\n\n[2] The dose is 8 litres.",
            {"The tank has a lid. [1]": (1,), "[2] The dose is 8 litres.": (2,)},
        ),
        (
            "The garden has beds.\n\n| Bed [1] | Water |\n|---|---|\n| [2] north | 8 l [3] |\n| south | [1] 4 l |\n",
            {"The garden has beds.": (), "| [2] north | 8 l [3] |": (2, 3), "| south | [1] 4 l |": (1,)},
        ),
        (
            "Bed | Water\n---|---\n[1] north | 8 l\n[2] south | 4 l",
            {"[1] north | 8 l": (1,), "[2] south | 4 l": (2,)},
        ),
        (
            "The pump starts at six.\n[1] The valve opens first.",
            {"The pump starts at six.\n[1]": (1,), "The valve opens first.": ()},
        ),
    ],
    ids=["items", "numbered items", "paragraph", "table", "table without bars", "wrapped line"],
)
def test_a_marker_before_an_item_or_in_a_row_is_its_own(answer: str, claims: dict[str, tuple[int, ...]]) -> None:
    """A marker at the beginning of an item, a paragraph or a row does not belong to what stands before. A marker that
    was wrapped to the next line does, and one in the head of a table is no row's."""
    assert {answer[claim.start : claim.end]: claim.citations for claim in claims_of(answer)} == claims


def test_items_are_judged_with_their_lead_and_rows_with_their_head() -> None:
    """An item or a row alone says nothing; a lead that only announces says nothing either."""
    texts = [claim.text for claim in claims_of(ANSWER)]

    assert "the garden has these beds: basil" in texts
    assert "Bed south, Water 4 l" in texts
    assert only("Here they are:\n\n- The valve opens first.").text == "The valve opens first."


@pytest.mark.parametrize("lead", ["ROS 2 has seven QoS policies [1]:", "In ROS 2 the 3 policies that matter most are:"])
def test_numbers_and_names_of_a_lead_are_not_those_of_its_items(lead: str) -> None:
    """An item is judged with what its lead is about, without the lead's numbers and names."""
    item = claims_of(f"{lead}\n\n- Depth: the default is 10 [1]")[-1]

    assert item.text.endswith(": Depth: the default is 10")
    assert "polic" in item.text
    assert not {"2", "3", "seven", "ROS", "QoS"} & set(item.text.split())


def test_a_lead_that_cites_is_a_claim() -> None:
    """What it states can be true or false; a lead without a marker only announces."""
    cited, item = claims_of("There are nine stop categories [1]:\n\n- Category 0 cuts the power [2]")

    assert (cited.text, cited.citations) == ("There are nine stop categories.", (1,))
    assert item.citations == (2,)


def test_a_sentence_may_begin_with_code() -> None:
    """Each sentence has its own markers."""
    first, second = claims_of("Check the tree with `check_urdf` [2]. `rqt_graph` shows the broken tree [3].")

    assert (first.citations, second.citations) == ((2,), (3,))


@pytest.mark.parametrize(
    "text",
    [
        "The book does not say how long a category 1 stop may take.",
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
        "I could not find anything about Windows in the passages.",
        "The book says nothing about executors.",
        "No mention is made of executors in the book.",
        "The provided context does not specify the Python version.",
        "Nothing in the passages mentions Kubernetes.",
        "The passages are silent on Docker.",
        "Docker isn't covered here.",
        "It is unclear from the passages whether Windows works.",
        "The book leaves open how many nodes Gazebo needs.",
        "There is no information about Foxy.",
        "Beyond that, no details on Windows are provided.",
        "The book gives no numbers for the load.",
        "Unfortunately, the price of the Jetson is not mentioned.",
        "I don't have information about that.",
        "I'm sorry, but I can't answer this from the passages.",
        "Unfortunately I cannot answer this question based on the provided passages.",
        "The text does not give a price, so this question cannot be answered from it.",
        "The passages do not mention the second pump, so I can't compare the two.",
        "Based on the passages provided, there is no information about the price.",
        "No, the book never mentions it.",
        "None of the passages mentions the price.",
        "Neither passage says how much the pump costs.",
        "It does not go into the theory of pumps.",
        "How much the pump costs is not stated.",
        "There is no benchmark for phones in these passages, and the book says nothing about German.",
        "**Sources**\n\n[1] Nodes and Topics in short\n[2] The second lesson of it",
        "## References\n\n1. Nodes and topics of the graph",
        "Source: Nodes and Topics, What is a node? [1]",
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


def test_an_item_that_names_what_its_nested_items_say_is_no_claim() -> None:
    """It is judged with each of them."""
    claims = claims_of("1. **Reliability**\n   - It is reliable by default [1]\n2. **Depth**\n   - It is ten [1]\n")

    assert [claim.text for claim in claims] == ["reliability: It is reliable by default", "depth: It is ten"]


def test_a_sentence_may_begin_with_a_picture() -> None:
    """It is not a part of the one before."""
    claims = claims_of("With fusion it bridges short gaps [1].\n⚠️ It needs the noise density [2].")

    assert [claim.citations for claim in claims] == [(1,), (2,)]


def test_markers_below_a_table_are_those_of_its_rows() -> None:
    """Of all rows, and the marker itself stands with the last one."""
    claims = claims_of("Step | Error\n--- | ---\n1 ms | 4 mm\n2 ms | 8 mm\n\n[1]\n\nSo it grows with the step [2].")

    assert [claim.citations for claim in claims] == [(1,), (1,), (2,)]
    assert [len(claim.markers) for claim in claims] == [0, 1, 1]


@pytest.mark.parametrize(
    "text", ["The pump does not start at night.", "Only the gardener may change the text of the schedule."]
)
def test_a_negation_about_the_subject_is_a_claim(text: str) -> None:
    """Only what is said about the book itself is left out."""
    assert only(text).text == text


signs = st.text(alphabet="`~>[]()#*-|:.!? \n\t12ab,。水\\</", max_size=200)
lines = st.lists(
    st.sampled_from(
        [
            "The pump starts at six [1].", "It runs for 12 minutes. [2][3]", "- An item has words [1]",
            "  - Nested item [2]",
            "1. First step is this.", "| a | b |", "|---|---|", "| c [1] | d |", "> Quoted words are here. [3]", "```",
            "pump start [1]", "~~~", "", "## Heading [1]", "The steps of it are:", "Yes.", "    indented words here",
            "[1]", "- [2] Its marker comes first", "| [3] e | f |", "[1] g | h", "- [1]",
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


def test_a_quotation_goes_on_on_a_line_without_its_sign() -> None:
    """As Markdown has it: the line belongs to the same paragraph."""
    assert [claim.kind for claim in claims_of("> The tank is never empty.\nThe pump is never dry.")] == ["quote"] * 2


@pytest.mark.parametrize(
    "sentence",
    [
        "The material is not magnetic [1].",
        "Light sources have no effect on the lamp [1].",
        "The guide rail is only 3 mm wide [1].",
        "See the torque limit of 90 Nm [1].",
        "Although the book does not say so, you must run the motor at 48 V [1].",
        "The motor cannot run at 48 V without a fan [1].",
        "No, the pump never mentions a fault [1].",
        "None of the pumps may run at night [1].",
        "It does not give off much heat at night [1].",
        "A state that the sensor does not know is not stated as an error, but ends the program [1].",
    ],
)
def test_what_only_sounds_like_a_word_about_the_book_is_a_claim(sentence: str) -> None:
    """A negation or a word such as `guide` does not keep a claim from being judged."""
    assert len(claims_of(sentence)) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            "**The pump runs at 48 V and must never be stopped.** [1]",
            "The pump runs at 48 V and must never be stopped.",
        ),
        ("**Cut the red wire first.** [1]", "Cut the red wire first."),
        ("**Cut the red wire first** [1].", "Cut the red wire first."),
        ("**The wire isn't cut.** Yes.", "The wire is not cut."),
        ("Yes. **Cut the red wire.**", "Cut the red wire."),
        ("**The wire must be cut.** Yes.", "The wire must be cut."),
        ("## The pump runs at 48 V. [1]", "The pump runs at 48 V."),
        ("## Cut the red wire first [1]", "Cut the red wire first"),
        ("The pump must be stopped. [1]\n---", "The pump must be stopped."),
        ("<b>Cut the red wire</b> before you open the valve [1].", "Cut the red wire before you open the valve."),
        ("<p>Cut the red wire.</p>", "Cut the red wire."),
        ("<div>\n<p>Cut the red\nwire.</p>\n</div>", "Cut the red wire."),
    ],
)
def test_bold_tagged_and_set_as_a_heading_a_statement_is_a_claim(answer: str, text: str) -> None:
    """How a sentence is set does not keep it from being judged."""
    assert only(answer).text == text


@pytest.mark.parametrize(
    "answer", ["**Pump settings**", "**How the pump starts every day**", "## How the pump starts each day [1]", "<br>"]
)
def test_bold_lines_without_a_statement_are_headings(answer: str) -> None:
    """They announce what comes."""
    assert claims_of(answer) == []


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The book does not say so, but you should cut the red wire first [1].", "you should cut the red wire first."),
        (
            "The book does not only cover pumps: cut the red wire before you start.",
            "cut the red wire before you start.",
        ),
        (
            "The book does not only cover pumps but also shows how to cut the red wire.",
            "also shows how to cut the red wire.",
        ),
        ("The price is not given in the book; cut the red wire first.", "cut the red wire first."),
        ("The book does not say why, and you must cut the red wire.", "you must cut the red wire."),
        ("See the section on pumps and cut the red wire before you start.", "cut the red wire before you start."),
        ("See lesson 4: the pump runs at 48 V.", "the pump runs at 48 V."),
        (
            "For more torque, disable the limiter below the motor.",
            "For more torque, disable the limiter below the motor.",
        ),
        ("See that the pump stays below 90 degrees.", "See that the pump stays below 90 degrees."),
        ("Never use the red wire shown in the book.", "Never use the red wire shown in the book."),
        ("You must not use the wire shown in the book.", "You must not use the wire shown in the book."),
    ],
)
def test_only_the_clause_about_the_book_is_left_out(sentence: str, text: str) -> None:
    """What a sentence says besides is judged without it."""
    claim = only(sentence)

    assert (claim.text, claim.bare) == (text, text)
    assert sentence[claim.start : claim.end] == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "The book does not say how to install and configure the driver.",
        "The book does not cover these topics: pumps, water valves and motor limits.",
        "The book does not cover pumps, but this is no fault.",
        "The passages do not compare pumps and never mention the price.",
        "See the lessons on pumps and water valves in winter.",
        "See lesson 4 and lesson 5 for the water valves.",
        "For more details, see the section on pumps.",
        "For details see the pictures below.",
        "See the section on pumps and read the lesson on valves.",
        "How to start and stop the pump is not covered in the book.",
        "Pumps that must run are never mentioned in the book.",
    ],
)
def test_a_sentence_that_is_all_about_the_book_is_no_claim(sentence: str) -> None:
    """Neither what is listed in it nor a second reference is a statement."""
    assert claims_of(sentence) == []


def test_a_tagged_claim_has_its_tags() -> None:
    """So that no half of a pair stays where a claim is hidden. Tags in code are the book's."""
    answer = "Yes. <b>Cut the red wire.</b>\n\nSet `<b>` as the `<i>` of it [1]."

    assert [answer[claim.start : claim.end] for claim in claims_of(answer)] == [
        "<b>Cut the red wire.</b>",
        "Set `<b>` as the `<i>` of it [1].",
    ]
    assert claims_of(answer)[1].text == "Set `<b>` as the `<i>` of it."


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (r"| x \| y | 5 |", "A x | y, B 5"),
        ("| `x|y` | 5 |", "A `x|y`, B 5"),
        (r"| `x \| y` | 5 |", "A `x | y`, B 5"),
        ("| x ` y | 5 |", "A x ` y, B 5"),
        (r"| x | 5 \| 6", "A x, B 5 | 6"),
    ],
)
def test_a_bar_in_a_cell_is_part_of_it(row: str, text: str) -> None:
    """After a backslash and in code it separates no cells."""
    assert only(f"| A | B |\n|---|---|\n{row}\n").text == text


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("- Valve\n- b:\n  - It leaks daily", ["Valve", "b: It leaks daily"]),
        ("1. The red pump:\n   - It leaks daily\n     - Then it stops\n2. Valves", [
            "the red pump: It leaks daily", "it leaks daily: Then it stops", "Valves",
        ]),
        ("The parts of a garden:\n\n- **Pump**\n    - It leaks daily\n- **Valve**\n    - It is dry", [
            "the parts of a garden: Pump", "pump: It leaks daily", "the parts of a garden: Valve", "valve: It is dry",
        ]),
        ("- The red pump:\n  - It leaks daily\n\nHere they are:\n\n  - It is dry", [
            "the red pump: It leaks daily", "It is dry",
        ]),
        ("> - The red pump:\n>   - It leaks daily", ["the red pump: It leaks daily"]),
    ],
)  # fmt: skip
def test_a_nested_item_is_judged_with_its_parent(answer: str, texts: list[str]) -> None:
    """The parent says what the item is about."""
    assert [claim.text for claim in claims_of(answer)] == texts


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("1. **Pump.** It is red", "Pump: It is red"),
        ("**The pump.** It is red and old [1].", "The pump: It is red and old."),
        ("**Yes.** The pump is red and old.", "The pump is red and old."),
        ("**Step 3.** The pump is red and old.", "The pump is red and old."),
        ("**What is red?** The pump is red and old.", "The pump is red and old."),
    ],
)
def test_a_sentence_is_judged_with_the_label_before_it(answer: str, text: str) -> None:
    """A label on the wrong sentence makes it false. `Yes`, `Note` and `Step 3` say nothing about the book."""
    claim = only(answer)

    assert claim.text == text
    assert claim.text.endswith(claim.bare)


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("水泵每天早上六点启动[1]。它运行十二分钟。[2]", ["水泵每天早上六点启动。", "它运行十二分钟。"]),
        ("ポンプは毎朝六時に始動します[1]。", ["ポンプは毎朝六時に始動します。"]),
        ("ปั๊มน้ำเริ่มทำงานตอนหกโมงเช้าทุกวัน [1]", ["ปั๊มน้ำเริ่มทำงานตอนหกโมงเช้าทุกวัน"]),
        ("**水泵每天早上六点启动** [1]", ["水泵每天早上六点启动"]),
        ("تعمل المضخة كل صباح. لا تتوقف المضخة أبدا.", ["تعمل المضخة كل صباح.", "لا تتوقف المضخة أبدا."]),
        ("是的。", []),
        ("水泵每天早上六点启动吗？", []),
        ("水泵每天早上六点启动的步骤如下：", []),
    ],
)  # fmt: skip
def test_claims_of_every_script_are_found(answer: str, texts: list[str]) -> None:
    """Where no spaces separate words, characters are counted."""
    assert [claim.text for claim in claims_of(answer)] == texts


@pytest.mark.parametrize(
    ("answer", "is_denial"),
    [
        ("The book does not say how much the pump costs.", True),
        ("I'm sorry, but I can't answer this from the passages.", True),
        ("No price is given in the passages. They do not mention one.", True),
        ("Yes.", False),
        ("It costs a lot.", False),
        ("The book does not say how much it costs, but it needs 48 V.", False),
        ("", False),
    ],
)
def test_an_answer_may_say_only_that_the_book_does_not_answer(answer: str, is_denial: bool) -> None:
    """In its own words, in place of the agreed sign."""
    assert only_denies(answer) is is_denial
