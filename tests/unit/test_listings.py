"""Listings are judged line by line against every passage."""

from __future__ import annotations

import pytest

from lectern.grounding.listings import judge_listing

LAUNCH = """Start the camera like this:

```bash
ros2 run camera driver --rate 30
ros2 topic echo /camera/image
ros2 topic hz /camera/image
```
"""
BUILD = """Build it first:

```bash
colcon build --symlink-install
source install/setup.bash
```
"""
EXACT = "ros2 run camera driver --rate 30\nros2 topic echo /camera/image\nros2 topic hz /camera/image"


@pytest.mark.parametrize(
    "listing",
    [
        EXACT,
        "ros2 run camera driver --rate 30",
        "# start the driver\nros2   run camera driver --rate 30  # as fast as it can\n\nros2 topic echo /camera/image",
    ],
    ids=["whole", "one line", "comments and spaces"],
)
def test_lines_of_the_book_are_supported(listing: str) -> None:
    """Whole or in part, with comments of the model's own, which state nothing."""
    judgement = judge_listing(listing, [BUILD, LAUNCH])

    assert (judgement.verdict, judgement.passage) == ("supported", 1)
    assert judgement.evidence == "ros2 run camera driver --rate 30"


def test_a_listing_may_be_made_of_two_passages() -> None:
    """An answer puts together what stands in two places."""
    listing = "colcon build --symlink-install\nsource install/setup.bash\nros2 run camera driver --rate 30"

    assert judge_listing(listing, [LAUNCH, BUILD]).verdict == "supported"
    assert judge_listing(listing, [LAUNCH]).verdict != "supported"


@pytest.mark.parametrize(
    ("original", "changed"),
    [("--rate 30", "--rate 60"), ("--rate 30", "--fast 30"), ("/camera/image", "/camera/depth")],
    ids=["number", "option", "name"],
)
def test_one_changed_line_is_doubtful(original: str, changed: str) -> None:
    """A reader would type it as it is; the book's own line is the evidence."""
    judgement = judge_listing(EXACT.replace(original, changed, 1), [BUILD, LAUNCH])

    assert (judgement.verdict, judgement.passage) == ("doubtful", 1)
    assert original in judgement.evidence
    assert changed not in judgement.evidence
    assert judgement.reason


@pytest.mark.parametrize(
    "listing", ["docker compose up -d\ndocker ps", "print('hello')", "", "# only a comment", "}\n)"]
)
def test_an_invented_listing_is_neither(listing: str) -> None:
    """What is not the book's is not confirmed; without a line that was changed nothing speaks against it."""
    assert judge_listing(listing, [BUILD, LAUNCH]).verdict == "unconfirmed"


def test_no_passages_support_nothing() -> None:
    """There is nothing to compare with."""
    assert judge_listing(EXACT, []).verdict == "unconfirmed"


def test_the_beginning_of_a_line_is_not_the_line() -> None:
    """`rate = 10` is another number than the `rate = 100` of the book, and a directive is no comment."""
    passages = ["```\nrate = 100\nperiod = 0.55\n#define MAX 50\n```"]

    assert judge_listing("rate = 10\nperiod = 0.5", passages).verdict != "supported"
    assert judge_listing("rate = 100\nperiod = 0.55\n#define MAX 5", passages).verdict == "doubtful"
