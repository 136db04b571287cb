"""The network that finds answers: its numbers depend on the texts alone, every piece gets one however long the passage
is, and damaged weights are refused."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.confidence.locating import CANNOT_ANSWER, locate, readable
from lectern.domain.errors import ModelDamaged
from lectern.models.local import pairs
from lectern.models.local.answer_locator import (
    CACHE_SIZE,
    LOCATOR,
    MAX_PIECE_TOKENS,
    MAX_QUESTION_TOKENS,
    MAX_WINDOW_PIECES,
    MODEL,
    LocalAnswerLocator,
    log_odds,
)
from lectern.models.local.packaged_models import CHECKSUMS, WINDOW
from lectern.ports.answering import Passage, Pieces
from lectern.text.quotes import quotes_of, sections_of

PUMP: Pieces = (
    "The pump",
    (
        "The pump starts at six in the morning.",
        "It does not start when the tank holds less than 40 litres.",
        "Its housing is made of cast iron.",
    ),
)
QUESTIONS = ["When does the pump begin to run?", "What is the housing made of?", "Who invented the pump?"]


class Counting:
    """A session that gives each mark its own number, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []

    def run(self, _: None, inputs: dict[str, Any]) -> list[Any]:
        """Scores as the network gives them: two for each word piece."""
        ids = inputs["input_ids"][0].tolist()
        self.given.append(ids)
        scores = np.zeros((1, len(ids), 2), np.float32)
        scores[0, :, 1] = np.arange(len(ids))
        return [scores]


def reader(session: Any) -> pairs.PairReader:
    """The real tokenizer with another network."""
    real = pairs.reader(LOCATOR, MODEL)
    return pairs.PairReader(MODEL, real.tokenizer, session, real.cls_id, real.sep_id)


async def test_the_piece_that_answers_is_the_likeliest() -> None:
    """The shipped weights are the right ones, read the right way round; what no piece says has no likely piece."""
    (when,), (what_odds,), (who_odds,) = [await LocalAnswerLocator().find(question, [PUMP]) for question in QUESTIONS]

    assert max(range(3), key=when.__getitem__) == 0
    assert max(range(3), key=what_odds.__getitem__) == 2
    assert max(when) > 0
    assert max(what_odds) > 0
    assert max(who_odds) < -1


async def test_the_same_texts_give_the_same_numbers() -> None:
    """To the last bit: alone, again, among others, and when several ask at once."""
    other_pieces: Pieces = ("Flowers", ("Roses are red.", "Violets are blue."))
    (alone,) = await LocalAnswerLocator().find(QUESTIONS[0], [PUMP])
    locator = LocalAnswerLocator()
    at_once = await asyncio.gather(
        *(locator.find(question, [other_pieces, PUMP, other_pieces]) for question in QUESTIONS * 2)
    )

    assert at_once[0][1] == at_once[3][1] == alone
    assert at_once[0][0] == at_once[0][2]
    assert await locator.find(QUESTIONS[0], [PUMP]) == [alone]


async def test_many_questions_at_once_do_not_lose_each_others_numbers() -> None:
    """What one question pushes out of memory while another waits is still given to the other."""
    locator = LocalAnswerLocator()
    pieces: list[Pieces] = [("", (f"It is number {number}.",)) for number in range(20)]
    alone = await locator.find("What is it?", pieces)
    other_calls = [locator.find(f"Is it {number}?", pieces) for number in range(4)]

    assert (await asyncio.gather(*other_calls, locator.find("What is it?", [*pieces, PUMP])))[-1][:20] == alone


async def test_a_list_of_single_words_is_read_as_a_whole() -> None:
    """Items that are too short to be quoted alone still answer together."""
    text = "The pump is loud.\n\nThe parts of the pump are:\n\n- Housing\n- Rotor\n- Valve\n"
    (odds,) = await locate(
        LocalAnswerLocator(), "What are the parts of the pump?", [Passage(number=1, text=text, heading="The pump")]
    )
    kinds = [quote.kind for quote in quotes_of(text)]

    assert odds[kinds.index("list")] == max(odds) > 0


def test_a_row_is_read_with_the_heads_of_its_cells() -> None:
    """`20 s` means nothing unless something says of what; cells that do not match their heads are left as they are."""
    table = "| Phase | Budget | |\n|---|---|---|\n| grasp | 20 s | twice |\n| place | | |\n"
    ragged = "| Phase | Budget |\n|---|---|\n| grasp | 20 s | twice |\n"

    assert sections_of(quotes_of(table), "") == [("", ("Phase: grasp | Budget: 20 s | twice", "Phase: place"))]
    assert sections_of(quotes_of(ragged), "") == [("", ("grasp | 20 s | twice",))]


def test_pieces_are_read_below_the_heading_that_stands_above_them() -> None:
    """What a piece is about often stands in its heading alone, so each heading inside a passage is read with its own
    pieces. Those above the first one are read with the heading of the passage."""
    passage = """Wear gloves when you open it.

### Clean the filter

Take it out and rinse it well.

#### How often

Once a month is enough."""
    assert sections_of(quotes_of(passage), "The pump") == [
        ("The pump", ("Wear gloves when you open it.",)),
        ("Clean the filter", ("Take it out and rinse it well.",)),
        ("How often", ("Once a month is enough.",)),
    ]


@pytest.mark.parametrize(
    ("block", "pieces"),
    [
        (
            "- water from the washbasin\n- clean rain water",
            ["These liquids are allowed: water from the washbasin", "clean rain water"],
        ),
        ("| Liquid | Up to |\n|---|---|\n| oil | 2 l |", ["These liquids are allowed: Liquid: oil | Up to: 2 l"]),
    ],
    ids=["list", "table"],
)
def test_the_line_that_introduces_a_list_or_table_is_read_with_its_first_entry(block: str, pieces: list[str]) -> None:
    """The line says what the entries are, and is no piece of its own."""
    passage = f"It pumps a lot.\n\nThese liquids are allowed:\n\n{block}"

    assert sections_of(quotes_of(passage), "") == [("", ("It pumps a lot.", *pieces))]


def test_a_lead_is_read_again_below_another_heading() -> None:
    """What stands below a heading is understood without the section before it, even if both begin alike."""
    passage = "### The pump\n\nIt needs:\n\n- clean rain water\n\n### The lamp\n\nIt needs:\n\n- a small battery\n"

    assert sections_of(quotes_of(passage), "") == [
        ("The pump", ("It needs: clean rain water",)),
        ("The lamp", ("It needs: a small battery",)),
    ]


async def test_what_is_kept_does_not_grow() -> None:
    """Numbers of so many passages are kept and no more."""
    locator = LocalAnswerLocator()
    for number in range(CACHE_SIZE + 5):
        await locator.find("What is it?", [("", (f"It is number {number}.",))])

    assert len(locator._cache) == CACHE_SIZE  # what is promised is the memory it takes


@given(st.lists(st.integers(1, 150), max_size=60), st.integers(1, 80))
def test_every_piece_is_read_once_within_the_window(lengths: list[int], question_length: int) -> None:
    """However many and however long: one number a piece, in order, no window too long, no question crowded out."""
    session = Counting()
    network = reader(session)
    odds = log_odds(network, "why " * question_length, ("heading", tuple("word " * length for length in lengths)))

    assert len(odds) == len(lengths)
    assert all(len(ids) <= WINDOW for ids in session.given)
    marks = [ids.count(network.sep_id) - 2 for ids in session.given]
    assert sum(marks) == len(lengths)
    assert all(1 <= count <= MAX_WINDOW_PIECES for count in marks)
    asking = network.token_ids("why")[0]
    assert all(ids.count(asking) == min(question_length, MAX_QUESTION_TOKENS) for ids in session.given)
    word = network.token_ids("word")[0]
    assert sum(ids.count(word) for ids in session.given) == sum(min(length, MAX_PIECE_TOKENS) for length in lengths)


def test_marks_of_the_network_in_a_text_are_text() -> None:
    """A piece may say [SEP]; it is still one piece."""
    session = Counting()
    network = reader(session)

    assert len(log_odds(network, "[SEP]", ("[CLS]", ("[SEP]", "[SEP] [SEP]")))) == 2
    assert session.given[0].count(network.sep_id) == 4
    assert session.given[0].count(network.cls_id) == 1


@pytest.mark.parametrize("name", [MODEL, CHECKSUMS])
async def test_damaged_weights_are_refused(tmp_path: Path, name: str) -> None:
    """One changed byte in either file, and nothing is loaded; the message says what to do."""
    folder = shutil.copytree(LOCATOR, tmp_path / "finder")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)

    with pytest.raises(ModelDamaged, match="install lectern anew"):
        await LocalAnswerLocator(folder).find("text", [PUMP])


def test_the_module_loads_nothing_heavy() -> None:
    """`lectern --help` must not wait for a model's libraries."""
    heavy = "{'numpy', 'onnxruntime', 'tokenizers'}"
    code = f"import sys, lectern.models.local.answer_locator; print({heavy} & sys.modules.keys())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "set()"


async def test_every_quote_of_a_passage_has_its_number() -> None:
    """A listing is read with the line that introduces it, a list is as likely as the best of its items."""
    listed = "Before you start, check:\n\n- the tank, which must be full\n- the valve, which must be open\n\n"
    text = f"{listed}To start it, run:\n\n```sh\npump on\n```\n"
    (odds,) = await locate(
        LocalAnswerLocator(), "Which command starts the pump?", [Passage(number=1, text=text, heading="The pump")]
    )
    quotes = quotes_of(text)
    by_kind = dict(zip((quote.kind for quote in quotes), odds, strict=True))

    assert len(odds) == len(quotes)
    assert by_kind["code"] == max(odds)
    assert by_kind["list"] == max(value for quote, value in zip(quotes, odds, strict=True) if quote.kind == "item")


async def test_a_question_that_cannot_be_read_prefers_nothing() -> None:
    """Another script than the one it was trained on: all quotes are alike, nothing is called unlikely."""
    question = "پمپ کب شروع ہوتا ہے؟"

    assert not readable(question, ())
    assert readable("When does the pump start? (Größe 3)", ())
    assert not readable("Wann startet sie?", ["Die Pumpe ist laut und hat einen Motor, wenn der Tank nicht leer ist."])
    assert await locate(
        LocalAnswerLocator(), question, [Passage(number=1, text="One sentence is here. Another one is there.")]
    ) == [[0.0, 0.0]]


async def test_a_quote_that_lacks_what_is_required_cannot_answer() -> None:
    """What is said of a sibling is excluded, in a language that the network cannot read as well."""
    english = Passage(number=1, text="The G1 has four cameras. The H1 has two cameras.")
    german = Passage(
        number=1, text="Die G1 hat vier Kameras und ist nicht teuer. Die H1 hat zwei Kameras, wenn sie fährt."
    )

    ((sibling, model),) = await locate(LocalAnswerLocator(), "How many cameras does the H1 have?", [english])
    assert sibling == CANNOT_ANSWER
    assert model > 0
    assert await locate(LocalAnswerLocator(), "Wie viele Kameras hat die H1?", [german]) == [[CANNOT_ANSWER, 0.0]]
