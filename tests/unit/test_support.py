"""The judge without a language model: what it lets pass, what it does not, and that no text breaks it."""

import asyncio
import random
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.domain.errors import ModelDamaged
from lectern.domain.replies import Judgement
from lectern.evals.grounding import grounding_figures, load_grounding
from lectern.grounding.answer_claims import claims_of
from lectern.grounding.claims import read_claim, units_of
from lectern.grounding.judge import CLOSELY_COPIED, LocalJudge, Reading, bare_name, misquoted
from lectern.models.local.entailment import LocalEntailment
from lectern.text.pieces import sentences_of
from lectern.text.plain import plain
from lectern.text.quantities import quantities_of, same

PAIRS = Path(__file__).parents[2] / "examples" / "golden" / "judge" / "pairs.jsonl"
HELD_OUT = PAIRS.with_name("held_out.jsonl")

GARDEN = """## Watering

The pump starts at 06:00 and runs for 12 minutes. It does not start when the tank holds less than 40 litres.
The **north bed** gets twice as much water as the south bed, because it lies in the sun all day.

| Bed | Crop | Water per day |
|---|---|---|
| north | tomatoes | 8 l |
| south | lettuce | 4 l |
| `greenhouse` | basil | 3 l |

- The valve opens before the pump starts.
- Only the gardener may change the schedule in `garden.yaml`.
"""

WORD_FOR_WORD = [
    "The pump starts at 06:00 and runs for 12 minutes.",
    "It does not start when the tank holds less than 40 litres.",
    "The north bed gets twice as much water as the south bed, because it lies in the sun all day.",
    "Only the gardener may change the schedule in garden.yaml.",
    "According to the lesson, the valve opens before the pump starts.",
]
CHANGED_STATEMENTS = {
    "number": "The pump starts at 06:00 and runs for 15 minutes.",
    "number in words": "The pump starts at 06:00 and runs for twenty minutes.",
    "number of another row": "The south bed with lettuce gets 8 l of water per day.",
    "unit": "The pump starts at 06:00 and runs for 12 hours.",
    "unit of a prefix": "It does not start when the tank holds less than 40 millilitres.",
    "name": "Only the gardener may change the schedule in `orchard.yaml`.",
    "name of another row": "The `greenhouse` grows lettuce.",
    "negation lost": "It starts when the tank holds less than 40 litres.",
    "negation added": "The pump does not start at 06:00 and run for 12 minutes.",
    "limit lost": "Anybody but the gardener may change the schedule in `garden.yaml`.",
    "opposite": "The valve opens after the pump starts.",
    "opposite quantity": "It does not start when the tank holds more than 40 litres.",
    "swap": "The south bed gets twice as much water as the north bed, because it lies in the sun all day.",
    "swap between rows": "The north bed grows lettuce, and the south bed grows tomatoes.",
    "invented": "The pump was bought from a company in Norway.",
}


def judge(sentence: str, *passages: str, by: LocalJudge | None = None) -> Judgement:
    """One judgement, by rules alone unless another judge is given."""
    return asyncio.run((by or LocalJudge()).judge(sentence, passages))


@pytest.mark.parametrize("sentence", WORD_FOR_WORD)
def test_what_stands_in_the_passage_is_supported(sentence: str) -> None:
    """A sentence of the passage is supported for certain, whatever markup, line break or attribution it has; the words
    and their passage are the evidence."""
    judgement = judge(sentence, "Something else entirely.", GARDEN)

    assert (judgement.verdict, judgement.support, judgement.passage) == ("supported", 1.0, 1)
    assert judgement.evidence.replace("`", "").lower().rstrip(".") in plain(GARDEN).replace("`", "").lower()


def test_a_row_with_its_heads_is_supported() -> None:
    """A row of the table is the book's, word for word, though its heads are lines above it; with a cell of another row
    it is not."""
    (row, swapped) = claims_of(
        "| Bed | Crop | Water per day |\n|---|---|---|\n| south | lettuce | 4 l |\n| south | lettuce | 8 l |"
    )

    assert judge(row.text, GARDEN).verdict == "supported"
    assert judge(swapped.text, GARDEN).verdict != "supported"


def test_a_row_that_compares_things_is_supported_as_it_is_written() -> None:
    """Where the corner of a table is empty its columns are what is compared; a quoted row is still the book's."""
    table = "| | Topic | Service |\n|---|---|---|\n| Shape | stream | answer |\n| Can be cancelled | no | yes |"
    passage = f"{table}\n\nText."
    rows = claims_of(table)
    judgements = [judge(row.text, passage) for row in rows]

    assert [judgement.verdict for judgement in judgements] == ["supported", "supported"]
    assert [judgement.evidence for judgement in judgements] == [
        "Shape | stream | answer",
        "Can be cancelled | no | yes",
    ]
    (swapped,) = [claim for claim in claims_of(table.replace("no | yes", "yes | no")) if "cancelled" in claim.text]
    assert judge(swapped.text, passage).verdict != "supported"


@pytest.mark.parametrize("network", [None, LocalEntailment()], ids=["rules", "network"])
@pytest.mark.parametrize("kind", CHANGED_STATEMENTS)
def test_a_changed_sentence_is_not_supported(kind: str, network: LocalEntailment | None) -> None:
    """One changed number, unit, name, negation or role is enough for no support, with the network and without."""
    judged = judge(CHANGED_STATEMENTS[kind], GARDEN, by=LocalJudge(network))

    assert judged.verdict != "supported"
    assert judged.support < 0.5


@pytest.mark.parametrize("kind", ["number", "unit", "negation added"])
def test_a_close_copy_with_another_fact_is_doubtful(kind: str) -> None:
    """Where the passage says the same with another fact, the verdict says so, why, and what the passage says."""
    judgement = judge(CHANGED_STATEMENTS[kind], GARDEN, by=LocalJudge(LocalEntailment()))

    assert judgement.verdict == "doubtful"
    assert judgement.reason
    assert judgement.evidence in [unit.text for unit in units_of(GARDEN)]


@pytest.mark.parametrize(
    "sentence",
    [
        "The pump starts at 06:00; it runs for 12 minutes.",
        "The pump starts at 06:00 and runs for 720 seconds.",
        "The pump doesn't start when the tank holds less than 40 litres.",
        "Because it lies in the sun all day, the north bed gets twice as much water as the south bed.",
        "The schedule in `garden.yaml` may be changed only by the gardener.",
    ],
)
def test_the_same_in_other_words_is_supported(sentence: str) -> None:
    """Order, equal measures, contractions and voice do not cost a true sentence its support."""
    assert judge(sentence, GARDEN, by=LocalJudge(LocalEntailment())).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The fee is $5 a day.", "The fee is €5 a day."),
        ("Here x ∈ A holds for all.", "Here x ∉ A holds for all."),
        ("The loop ends when x = y again.", "The loop ends when x != y again."),
        ("The side has the length 2 here.", "The side has the length √2 here."),
        ("The radio sends with 5 MW of power.", "The radio sends with 5 mW of power."),
        ("The supply gives 5 volts at most.", "The supply gives ±5 volts at most."),
        ("The area is a × b in the end.", "The area is a ÷ b in the end."),
        ("It is true if p and q, or p & q, hold.", "It is true if p and q, or p q, hold."),
    ],
)
def test_another_sign_is_no_quotation(claim: str, passage: str) -> None:
    """Currencies, operators and prefixes of units make another statement of the same words."""
    assert judge(claim, passage).verdict != "supported"
    assert judge(passage, passage).verdict == "supported"


@pytest.mark.parametrize("claim", ["Bed North, Water 4", "Bed South, Water 8", "North 4"])
def test_swapped_rows_are_not_ticked(claim: str) -> None:
    """A row of names and numbers is not taken for a list of names."""
    passage = "| Bed | Water |\n|---|---|\n| North | 8 |\n| South | 4 |\n"

    assert judge(claim, passage, by=LocalJudge(LocalEntailment())).verdict != "supported"


WINDUP = """### What is windup?

The integral grows all the time while the output is at its limit, for instance when the robot is held by hand. When
it is released, the stored sum drives it far beyond the set point before it turns back.
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "Windup means the accumulated error keeps building up while the actuator can't do anything about it.",
        "The fix is to freeze accumulation during saturation.",
        "It's when a loop stores up too much, e.g. because somebody blocks the machine.",
    ],
)
def test_free_words_are_no_evidence_against_a_claim(sentence: str) -> None:
    """A low sum alone, with few words of the passage, says nothing: the claim may be true in other words."""
    judgement = judge(sentence, WINDUP)

    assert judgement.verdict == "unconfirmed"


@pytest.mark.parametrize(
    "sentence",
    ["Windup was named by Rudolf Ziegler in a talk.", "Windup lasts about 40 seconds and then fades by itself."],
)
def test_a_foreign_name_or_number_in_free_words_is_concrete_evidence(sentence: str) -> None:
    """It flags a claim, and is not soft."""
    judgement = judge(sentence, WINDUP)

    assert (judgement.verdict, judgement.is_soft) == ("doubtful", False)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The ratio is 0.4.", "If a step takes 2.5 ms, the ratio is $1 / 2.5 = 0.4$, whatever you asked for."),
        ("An update sees 98 304 transitions.", "With 24 steps an update sees $4096 \\cdot 24 = 98304$ transitions."),
        ("Demand 19 of 20 successes, i.e. 95 %.", "Run it 20 times and demand 19 successes."),
    ],
)
def test_results_of_an_equation_are_no_other_numbers(claim: str, passage: str) -> None:
    """The label before an equation is that of its result; a percentage may be that of two numbers."""
    assert not asyncio.run(LocalJudge().vetoes(claim, [passage]))


STEPS = "Semi-implicit Euler is a method of first order: half the step, half the error, twice the work."


@pytest.mark.parametrize(
    ("claim", "vetoed"),
    [
        ("The method is of second order.", True),
        ("Half the step, a quarter of the error.", True),
        ("The method is of first order.", False),
        ("Half the step means half the error.", False),
        ("It is a first-order method.", False),
        ("Half the error costs twice the work per second of motion.", False),
    ],
)
def test_ordinals_and_fractions_have_a_veto(claim: str, vetoed: bool) -> None:
    """Where the passage has another one for the same thing."""
    assert asyncio.run(LocalJudge().vetoes(claim, [STEPS])) is vetoed


POLICIES = """## Policies

| Policy | Values | Default for topics |
|---|---|---|
| Reliability | reliable, best effort | reliable |
| History | keep last, keep all | keep last |
| Deadline | a duration | none |

Raise `K_d` until the overshoot is gone. Raise `K_i` until a lasting error vanishes. For a fixed arm category 0 is the
safest stop. The pump starts at six, if the tank is full.

- **Detection in front:** send audio to the model only when somebody speaks.

```cpp
double integral = 0.0;  // grows
```
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "the defaults for topics are: Reliability: best effort",
        "The default of the history is keep all.",
        "Policy Reliability, Default best effort",
        "Raise `K_i` until the overshoot is gone.",
        "Raise $K_d$ until a lasting error vanishes.",
        "Category 0 is the safest stop.",
        "The pump starts at six.",
        "Double integral grows.",
        "Double the integral.",
    ],
)
def test_the_books_own_words_in_another_place_are_not_ticked(sentence: str) -> None:
    """Of another column, with another symbol, torn out of a condition, or of a line of code."""
    assert judge(sentence, POLICIES).verdict != "supported"


@pytest.mark.parametrize(
    "sentence",
    [
        "Raise `K_d` until the overshoot is gone.",
        "For a fixed arm, category 0 is the safest stop.",
        "Send audio to the model only when somebody speaks.",
    ],
)
def test_the_books_own_words_in_their_place_are_ticked(sentence: str) -> None:
    """With its symbol and its condition."""
    assert judge(sentence, POLICIES).verdict == "supported"


def test_evidence_is_what_the_book_says() -> None:
    """A tick comes with the book's own words, a row with its cells; a flag on something else comes with none."""
    quoted = judge("**The north bed** gets twice as much water as the south bed", GARDEN)
    row = judge("South bed, crop lettuce, and it gets 4 l.", GARDEN, by=LocalJudge(LocalEntailment()))
    chat = judge("Hope this helps, and greetings from Stuttgart!", GARDEN, by=LocalJudge(LocalEntailment()))

    assert quoted.evidence in plain(GARDEN)
    assert row.evidence == "south | lettuce | 4 l"
    assert (chat.verdict, chat.evidence) == ("doubtful", "")


def test_a_fragment_is_not_taken_out_of_its_negation() -> None:
    """Words that stand in the passage only under a negation or a condition are not supported as they stand."""
    passage = "It is not true that the valve leaks. The lamp is on if the tank is empty."

    assert judge("The valve leaks.", "Nobody says that the valve leaks.").verdict != "supported"
    assert judge("true that the valve leaks", passage).verdict != "supported"
    assert judge("The lamp is on.", passage).verdict != "supported"


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Die Pumpe startet um sechs Uhr und läuft nicht lange, wenn der Tank leer ist.", GARDEN),
        ("水泵在六点启动。", GARDEN),
        ("", GARDEN),
        ("?! …", GARDEN),
        ("The pump starts at six.", ""),
        ("The pump starts at six. " * 200, GARDEN),
    ],
)
def test_what_the_rules_cannot_judge_is_unconfirmed(sentence: str, passage: str) -> None:
    """Another language, no words, no passage or a page-long sentence gets no verdict, and no exception."""
    assert judge(sentence, passage).verdict == "unconfirmed"


def test_another_language_is_supported_word_for_word() -> None:
    """A quotation needs no grammar: in any language it is supported."""
    passage = "پمپ صبح چھ بجے شروع ہوتا ہے۔ ٹینک خالی ہو تو یہ نہیں چلتا۔"

    assert judge("ٹینک خالی ہو تو یہ نہیں چلتا۔", passage).verdict == "supported"
    assert judge("ٹینک خالی ہو تو یہ چلتا۔", passage).verdict == "unconfirmed"


def test_a_lost_negation_in_another_language_is_not_overlooked() -> None:
    """English rules do not know `niet`: what is not a quotation stays unconfirmed, though every word of it is there."""
    passage = "De pomp start niet, wanneer de tank leeg is, en de lamp brandt niet."

    assert judge("De pomp start, wanneer de tank leeg is, en de lamp brandt.", passage).verdict == "unconfirmed"


def read(sentence: str, passage: str = GARDEN) -> Reading:
    """A sentence held against a passage, by words alone."""
    reading = asyncio.run(LocalJudge().read(sentence, [passage]))
    assert reading is not None
    return reading


def test_no_weight_outweighs_a_number_or_a_name_of_a_close_copy() -> None:
    """However well everything else fits, a close copy with a missing number or name is not supported."""
    signals = {**read("The pump starts daily.").signals, "copied": CLOSELY_COPIED}

    assert not misquoted(signals)
    for name in ("number_missing", "number_rival", "name_missing"):
        assert misquoted({**signals, name: 1.0})
        assert not misquoted({**signals, name: 1.0, "copied": CLOSELY_COPIED - 0.1})


@pytest.mark.parametrize(
    ("claim", "vetoed"),
    [
        ("The pump runs for 12 minutes.", False),
        ("The pump runs for 15 minutes.", True),
        ("The pump runs for 12 hours.", True),
        ("Only the gardener may change `orchard.yaml`.", True),
        ("The gardener changes `garden.yaml`.", False),
        ("Die Pumpe läuft im Garten 12 Minuten lang, bis die Beete nass sind.", False),
        ("Die Pumpe läuft im Garten 15 Minuten lang, bis die Beete nass sind.", True),
    ],
)
def test_numbers_units_and_names_have_a_veto(claim: str, vetoed: bool) -> None:
    """What no passage has cannot be supported by anybody, a language model included."""
    assert asyncio.run(LocalJudge().vetoes(claim, [GARDEN])) is vetoed


@pytest.mark.parametrize(
    ("signal", "sentence", "passage"),
    [
        (
            "unit_rival",
            "The angle that remains is given in degrees.",
            "The field holds the remaining angle, in radians.",
        ),
        ("generalised", "The pump always needs a filter.", "The pump needs a filter in winter."),
        ("late_words_missing", "The pump needs a filter against sand.", "The pump needs a filter in winter."),
        ("negation_differs", "The pump needs no filter in winter.", "The pump needs a filter in winter."),
        ("negation_differs", "The pump needs a filter in winter.", "The pump needs no filter in winter."),
        (
            "number_unbound",
            "The lamp has 3 pins, and the bell has 2 pins.",
            "The lamp has 2 pins, and the bell has 3 pins.",
        ),
    ],
)
def test_a_small_turn_raises_its_signal(signal: str, sentence: str, passage: str) -> None:
    """Each way of turning a statement is noticed, and the statement as it was raises nothing."""
    assert read(sentence, passage).signals[signal] > 0
    assert read(passage.split(". ", maxsplit=1)[0], passage).signals[signal] == 0


@pytest.mark.parametrize("network", [None, LocalEntailment()], ids=["rules", "network"])
@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("`Mover` gives a rough surface.", "`Mover` makes a body move, `Skin` gives a rough surface."),
        ("The pump always starts at dawn.", "The pump starts at dawn."),
        ("The pump is faster than the valve.", "The pump needs 2 s. The valve needs 3 s."),
    ],
)
def test_a_statement_that_goes_further_is_not_supported(
    sentence: str, passage: str, network: LocalEntailment | None
) -> None:
    """Another thing's property, `always` out of nowhere, and a conclusion are not what the passage says."""
    assert judge(sentence, passage, by=LocalJudge(network)).verdict != "supported"


def test_signals_alone_do_not_support_a_copy_without_its_limit() -> None:
    """Without `usually` a sentence says more; no signal reads that, so that signals alone do not let it pass."""
    assert judge("The pump starts at dawn.", "The pump usually starts at dawn.").verdict == "unconfirmed"


def test_a_shortened_copy_is_supported_and_a_turned_one_is_not() -> None:
    """Leaving out an aside keeps a sentence true; leaving out `only` does not, nor do numbers that changed places."""
    passage = "The pump (a small one) usually runs for 12 minutes, 3 times. Only the red lamp is lit at night."
    network = LocalJudge(LocalEntailment())

    assert judge("The pump usually runs for 12 minutes, 3 times.", passage, by=network).verdict == "supported"
    assert judge("The pump usually runs for 3 minutes, 12 times.", passage, by=network).verdict != "supported"
    assert judge("The red lamp is lit at night.", passage, by=network).verdict != "supported"


def test_what_cannot_be_judged_is_still_ordered_by_its_words() -> None:
    """Where no rule reaches, the support says how many of the words are there, and stays low."""
    passage = "De pomp start niet, wanneer de tank leeg is, en de lamp brandt niet."
    near, far = (
        "De lamp brandt, wanneer de tank leeg is, en de pomp start.",
        "Wij eten morgen vroeg brood met oude kaas.",
    )

    assert judge(far, passage).support < judge(near, passage).support < 0.5


class BrokenNetwork(LocalEntailment):
    """One that cannot be loaded."""

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """Fails as a damaged file does."""
        raise ModelDamaged("away")


def test_a_network_that_fails_leaves_the_rules() -> None:
    """A failure changes no verdict into an error: rules alone decide, exactly as without a network."""
    for sentence in CHANGED_STATEMENTS.values():
        assert judge(sentence, GARDEN, by=LocalJudge(BrokenNetwork())) == judge(sentence, GARDEN)


def test_tables_state_rows_and_columns() -> None:
    """A row is read with its heads; where the corner is empty, the columns are what is compared."""
    turned = "| | Topic | Service |\n|---|---|---|\n| Direction | one way | both ways |\n"

    assert "Bed south, Crop lettuce, Water per day 4 l" in [unit.text for unit in units_of(GARDEN)]
    assert [unit.text for unit in units_of(turned)] == ["Topic, Direction one way", "Service, Direction both ways"]


@pytest.mark.parametrize(
    ("first_text", "second_text", "equal"),
    [
        ("0.6 s", "600 ms", True),
        ("thirty minutes", "half an hour or 0.5 h", True),
        ("1.5 × 10^3 m", "1.5 km", True),
        ("12,000 bytes", "12 kB", True),
        ("$921\\,600$ B", "921 600 bytes", True),
        ("50-200 ms", "0.05 s", True),
        ("30 frames per second", "30 Hz", True),
        ("ten per cent", "10 %", True),
        ("95 % of the time", "with probability 0.95", True),
        ("a tenth of a second", "100 ms", True),
        ("two and a half milliseconds", "2.5 ms", True),
        ("two fifths", "2/5", True),
        ("one third", "1/2", False),
        ("64 KiB", "64 MiB", False),
        ("80 °C", "80 kelvin", False),
        ("0.5 rad/s", "0.5 degrees per second", False),
        ("6 weeks", "6 months", False),
        ("-5 cm", "5 cm", False),
        ("680k hours", "680 000 hours", True),
        ("680 thousand hours", "680,000 hours", True),
        ("0.68 million hours", "680 000 hours", True),
        ("3k columns", "3000", True),
        ("3 kg", "3000 kg", False),
        ("one hundred and twenty-eight", "128", True),
        ("two hundred thousand", "200 000", True),
        ("80 degrees Celsius", "80 °C", True),
        ("80 degrees Celsius", "80°", False),
        ("10⁻⁶ kg", "1 mg", True),
        ("10^-6 kg", "1e-6 kg", True),
        ("about 220 Mbit/s", "221 Mbit/s", True),
        ("≈ 0.92 MB", "921 600 bytes", True),
        ("220 Mbit/s", "221 Mbit/s", False),
        ("about 6 GB", "5 GB", False),
        ("every 20 ms", "50 Hz", True),
        ("for 20 ms", "50 Hz", False),
    ],
)
def test_quantities_are_compared_by_what_they_measure(first_text: str, second_text: str, equal: bool) -> None:
    """A measure equals itself in any unit and spelling, and nothing else."""
    matches = [any(same(a, b) for b in quantities_of(plain(second_text))) for a in quantities_of(plain(first_text))]

    assert any(matches) is equal


words = st.sampled_from("robot arm sensor valve bridge signal copper window engine garden letter planet".split())
verbs = st.sampled_from("moves measures closes reaches carries follows".split())


@st.composite
def statements(draw: st.DrawFn) -> str:
    """An English sentence with one number in it."""
    unit = draw(st.sampled_from(["ms", "kg", "metres", "percent", "volts", "boxes"]))
    return f"The {draw(words)} {draw(verbs)} the {draw(words)} within {draw(st.integers(2, 500))} {unit}."


@settings(max_examples=150, deadline=None)
@given(st.lists(statements(), min_size=1, max_size=6), st.sampled_from([" ", "\n", "\n\n", "\n- "]))
def test_every_sentence_of_a_passage_is_supported(sentences: list[str], joint: str) -> None:
    """What the offline model quotes is never doubted."""
    passage = joint.join(sentences)

    for sentence in sentences_of(passage):
        assert judge(sentence, passage).verdict == "supported"


@settings(max_examples=150, deadline=None)
@given(statements(), st.integers(501, 900))
def test_another_number_is_never_supported(sentence: str, number: int) -> None:
    """Changing the one number of a sentence costs it its support, whatever else stands there."""
    start, end = next(
        (quantity.start, quantity.start + len(f"{quantity.raw:g}")) for quantity in quantities_of(sentence)
    )
    changed_text = f"{sentence[:start]}{number}{sentence[end:]}"

    assert judge(changed_text, f"{sentence} The schedule is on the wall.").verdict != "supported"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
def test_any_text_gets_the_same_judgement_twice(sentence: str, passages: list[str]) -> None:
    """No text raises, the support is a share, and a second run finds the same."""
    first = judge(sentence, *passages)

    assert 0.0 <= first.support <= 1.0
    assert judge(sentence, *passages) == first


@settings(max_examples=60, deadline=None)
@given(statements())
def test_an_unrelated_passage_supports_nothing(sentence: str) -> None:
    """A passage about something else never supports a sentence."""
    passage = "Bread rises because yeast eats sugar. Bakers knead the dough until it is smooth and let it rest."

    assert judge(sentence, passage).verdict != "supported"


HOSTILE = [
    "- ",
    "> ",
    "|",
    "`",
    "$",
    "\\frac{",
    "[a](",
    "<a ",
    "_a_",
    "9",
    "1,000",
    "not ",
    "a.b",
    "/a.",
    "a b, ",
    "😀",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_cost_linear_time(piece: str) -> None:
    """Ten times the text takes at most some thirty times as long: no pattern or comparison runs away."""

    def took(size: int) -> float:
        passage = (piece * size)[:size] + "x"
        start_time = time.process_time()  # of this process: others on the machine do not count
        judge("The pump starts at 06:00 and runs for 12 minutes.", passage)
        judge(passage[:1_900], passage[1:])
        return time.process_time() - start_time

    small, large = (
        min(took(size) for _ in range(3)) for size in (4_000, 40_000)
    )  # the least: no collection of garbage
    assert large < 30 * small + 0.25


def test_the_dev_half_of_the_pairs_stays_within_its_bounds() -> None:
    """Sentences falsified by hand hardly ever pass, true paraphrases are hardly ever called false, quotations always
    pass; a little room is left below what was measured."""
    data = load_grounding(PAIRS)
    dev = replace(data, cases=tuple(case for case in data.cases if case.part == "dev"))
    kinds = asyncio.run(grounding_figures(dev, LocalJudge(LocalEntailment())))["parts"]["dev"]

    assert 1 - kinds["falsified"]["supported"] >= 0.95
    assert kinds["paraphrase"]["doubtful"] <= 0.05
    assert kinds["paraphrase"]["supported"] >= 0.11
    assert kinds["verbatim"]["supported"] == 1.0


def test_sentences_never_fitted_on_stay_where_they_were_measured() -> None:
    """A change to the judge must not make it worse on the set that measures it; a little room is left."""
    figures = asyncio.run(grounding_figures(load_grounding(HELD_OUT), LocalJudge(LocalEntailment())))
    kinds = figures["parts"]["held_out"]

    assert 1 - kinds["falsified"]["supported"] >= 0.97
    assert kinds["paraphrase"]["doubtful"] <= 0.03
    assert kinds["paraphrase"]["supported"] >= 0.11


def test_a_bare_name_is_supported_where_the_passages_name_it() -> None:
    """An item of a list states no more than that there is such a thing; another name, or a verb, is another matter."""
    passage = "The trophy went to Grace Brewster Hopper, and later to Alan Turing."

    assert bare_name(read("Grace Hopper", passage))
    assert not bare_name(read("Grace Turing Kernighan", passage))
    assert not bare_name(read("Turing won the trophy", passage))


@pytest.mark.parametrize("read", [read_claim, units_of])
def test_texts_that_were_read_fill_no_memory(read: Callable[[str], object]) -> None:
    """A server meets new texts for as long as it runs: what is kept of 600 takes no more memory than what is
    kept of 300."""
    chance = random.Random(20)

    def kept_of(texts: int) -> int:
        for _ in range(texts):
            read(" ".join(chance.choice(("motor", "Sensor.", "the map,", "`node_1`")) for _ in range(60)))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = kept_of(300)
        assert kept_of(300) <= 1.25 * first
    finally:
        tracemalloc.stop()
