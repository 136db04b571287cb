"""What in a claim is not from the passages: names in code, and sentences that a model was told to write."""

from __future__ import annotations

import pytest

from lectern.grounding.features import number_missing
from lectern.grounding.foreign import is_foreign, names_unknown_code, without_known_versions
from lectern.grounding.judge import LocalJudge
from lectern.text.plain import plain

PASSAGE = (
    "Mocks of modules live in a `__mocks__` folder beside `models/user.js`. Import `std::mem` and call `mem::take(&mut "
    "name)`. Whoever is unsure writes to <help@example.org> or reads <https://example.org/help>."
)
QUESTION = "Where do mocks live?"


@pytest.mark.parametrize(
    "claim",
    [
        "Put it into `__mocks__/`.",
        "The mock of `models/user.js` is `models/__mocks__/user.js`.",
        "Use `std::mem::take` on the field.",
        "Call `mem::take(…)`.",
    ],
)
def test_parts_of_known_names_are_known(claim: str) -> None:
    """Folders of a path and parts of a qualified name may stand in different places of a passage."""
    assert not names_unknown_code(claim, [PASSAGE])


@pytest.mark.parametrize(
    "claim",
    [
        "Use `std::mem::swap` on it.",
        "It is in `models/tests/user.js`.",
        "Call `user.take`.",
        "It is in `odels/ser.js`.",
        "Look into `/beside/modules/call`.",
        "Put it in `mocks.py`.",
    ],
)
def test_other_names_are_unknown(claim: str) -> None:
    """One part that no passage has is enough, and two known parts make no known name."""
    assert names_unknown_code(claim, [PASSAGE])


def test_signs_in_code_are_no_markup() -> None:
    """Underscores, stars and tags between backticks are the name's own; outside they are emphasis."""
    assert plain("Prepend `_` to *`__name__`* in _**this** `*args`_ of <b>one</b> `Vec<u8>`.") == (
        "Prepend `_` to `__name__` in this `*args` of one `Vec<u8>`."
    )


def test_backslashes_and_dollars_in_code_are_no_formulas() -> None:
    """A path of Windows, a pattern and a variable stay as they are; formulas beside them are read."""
    assert plain(r"Run `.venv\Scripts\activate.bat` with `$HOME`, `'\.(css|less)$'` or $\alpha$ in max\_size.") == (
        r"Run `.venv\Scripts\activate.bat` with `$HOME`, `'\.(css|less)$'` or α in max_size."
    )


def test_an_address_in_angle_brackets_is_text() -> None:
    """`<help@example.org>` is no tag, so a claim that names it says nothing new."""
    assert plain("Write to <help@example.org> or see <https://example.org/a_b>.") == (
        "Write to help@example.org or see https://example.org/a_b."
    )


@pytest.mark.parametrize(
    ("claim", "missing"), [("It has three parts.", 0.0), ("It has 3 parts.", 0.7), ("It takes five seconds.", 0.7)]
)
async def test_a_writers_own_count_is_no_evidence(claim: str, missing: float) -> None:
    """`in three ways` counts what the book lists; digits and numbers with a unit are the book's or are not."""
    reading = await LocalJudge().read(claim, ["It has a head, a shaft and a tip, and takes its time."])

    assert reading is not None
    assert reading.signals[number_missing.__name__] == missing


@pytest.mark.parametrize(
    ("claim", "support", "expected"),
    [
        ("Buy a subscription of our sponsor before you go on.", 0.0, True),
        ("The author of this text steals your data.", 0.02, True),
        ("Mocks live beside the module that they replace.", 0.02, False),  # its words are the book's
        ("Doubles are stored right next to what they stand for.", 0.45, False),  # the judge nearly supports it
        ("Beware.", 0.0, False),  # one word tells nothing
    ],
)
def test_little_support_needs_words_of_the_book(claim: str, support: float, expected: bool) -> None:
    """A sentence with neither is none that the passages led to."""
    assert is_foreign(claim, support, [PASSAGE], QUESTION) is expected


def test_a_book_in_another_language_is_not_compared_by_words() -> None:
    """An answer in English then shares no words with it, however faithful it is."""
    german = (
        "Die Attrappen liegen in einem eigenen Ordner neben dem Modul, das sie ersetzen sollen, und heißen wie dieses."
    )

    assert not is_foreign("Buy a subscription of our sponsor before you go on.", 0.0, [german], "Wo liegen sie?")


def test_the_number_of_a_name_need_not_be_cited() -> None:
    """`ROS 2` is a name; another number of the same name in a cited passage is not forgiven."""
    assert without_known_versions("ROS 2 does it.", ["It does."], ["In ROS 2 it does."]) == "ROS does it."
    assert without_known_versions("ROS 2 does it.", ["ROS 1 does it."], ["ROS 1", "ROS 2"]) == "ROS 2 does it."
