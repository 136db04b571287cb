"""Listings are judged line by line against every passage."""

from __future__ import annotations

import pytest

from lectern.grounding.listings import MAX_LINES, MAX_ORIGINALS, judge_listing

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


ACCEPT = """```python
def accept(segment):
    if segment["no_speech"] > 0.6:
        return False
    if segment["logprob"] < -1.0:
        return False
    return segment["ratio"] < 2.4
```
"""


@pytest.mark.parametrize(
    ("original", "changed"),
    [('"no_speech"] > 0.6', '"no_speech"] < 0.6'), ("return False", "return True"), ("< -1.0", "<= -1.0")],
    ids=["direction", "constant", "equality"],
)
def test_a_changed_operator_or_constant_is_doubtful(original: str, changed: str) -> None:
    """The words are the same, and the listing does something else."""
    listing = ACCEPT.strip("`\n").removeprefix("python\n")

    assert judge_listing(listing, [ACCEPT]).verdict == "supported"
    assert judge_listing(listing.replace(original, changed, 1), [ACCEPT]).verdict == "doubtful"


def test_other_quotes_are_no_change() -> None:
    """A listing in another style is the book's."""
    listing = ACCEPT.strip("`\n").removeprefix("python\n").replace('"', "'")

    assert judge_listing(listing, [ACCEPT]).verdict != "doubtful"


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


def test_a_long_listing_is_compared_with_a_few_lines_of_the_book(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work grows with the lines of listing and book, not with their product."""
    compared = 0

    def count(line: str, candidate: str) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr("lectern.grounding.listings._is_nearly_equal", count)
    for size in (50, 100):
        book = "\n".join(f"self.valve_{number} = open(valve, {number})" for number in range(10 * size))
        known = [f"self.valve_{number} = open(valve, {number})" for number in range(size)]
        changed = [f"self.valve_{number} = open(valve, x{number})" for number in range(size - 1)]
        compared = 0
        judge_listing("\n".join([*known, *changed]), [book])

        assert 0 < compared <= MAX_ORIGINALS * size


def test_the_original_is_found_among_many_lines_with_the_same_words() -> None:
    """The lines that share a rare word with the changed one are looked at first."""
    lines = [f"self.valve_{number} = open(valve, {number})" for number in range(500)]
    listing = "\n".join([*lines[:5], lines[400].replace("open", "shut")])

    assert judge_listing(listing, ["\n".join(lines)]).evidence == lines[400]


TEN = [f"run({number})" for number in range(10, 17)] + ["setup.load()", "loop.spin()", "loop.stop()"]


@pytest.mark.parametrize("size", [10, 20, 40])
def test_a_changed_line_is_seen_however_long_the_listing_is(size: int) -> None:
    """Nine lines of ten are the book's, but a reader would type the tenth as well."""
    lines = [f"step_{number}(speed, {number})" for number in range(size - len(TEN))] + TEN
    listing = "\n".join(lines)
    passages = [f"```python\n{listing}\n```"]

    assert judge_listing(listing, passages).verdict == "supported"
    judgement = judge_listing(listing.replace("run(13)", "run(99)"), passages)
    assert (judgement.verdict, judgement.evidence) == ("doubtful", "run(13)")


@pytest.mark.parametrize(
    ("language", "line", "changed"),
    [
        ("python", "x = 10 // 3", "x = 10 // 7"),
        ("bash", "kubectl exec pod -- ls /data", "kubectl exec pod -- rm -rf /data"),
        ("", "x = 10 // 3", "x = 10 // 7"),
        ("cron", "* * * * * backup --keep 7", "* * * * * backup --keep 1"),
        ("cron", "* 3 * * * backup --keep 7", "* 3 * * 1 backup --keep 7"),
        ("bash", "# apt install nginx", "# apt install nginz"),
        ("console", "# mount /dev/sda1 /mnt", "# mount /dev/sdb1 /mnt"),
    ],
)
def test_operators_options_crontabs_and_root_prompts_are_no_comments(language: str, line: str, changed: str) -> None:
    """What comes after `//` or `--` is code in these languages, and so are lines with `*` or a prompt before them."""
    others = "\n".join(TEN)
    passages = [f"```{language}\n{others}\n{line}\n```"]

    assert judge_listing(f"{others}\n{line}", passages).verdict == "supported"
    judgement = judge_listing(f"{others}\n{changed}", passages)
    assert (judgement.verdict, judgement.evidence) == ("doubtful", " ".join(line.split()))


@pytest.mark.parametrize("added", ["# apt remove nginx", "* 1 * * * rm -rf /data", "    * 1.62", "rm -rf /data"])
def test_a_line_that_is_not_the_books_leaves_a_long_listing_unconfirmed(added: str) -> None:
    """A tick says that the book has the listing, and that is all of its lines."""
    others = "\n".join(TEN * 3)

    assert (
        judge_listing(f"{others}\n{added}", [f"```bash\n{others}\n# apt install nginx\n```"]).verdict == "unconfirmed"
    )


@pytest.mark.parametrize(
    ("language", "line", "commented"),
    [
        ("cpp", "int rate = 30; // Hz", "int rate = 30; // how often a second"),
        ("cpp", "int rate = 30;", "// set the rate\nint rate = 30; // how often"),
        ("", "int rate = 30;", "int rate = 30; // how often a second"),
        ("sql", "SELECT 1; -- one", "-- the first\nSELECT 1; -- a number"),
        ("python", "rate = 30  # Hz", "# set the rate\nrate = 30  # how often a second"),
        ("c", "rate = 30;", "/* set the\n * rate of it\n */\nrate = 30;"),
        ("bash", "pump start", "# rm is not needed here\npump start"),
    ],
)
def test_comments_of_the_model_state_nothing(language: str, line: str, commented: str) -> None:
    """A comment may be written anew, where the line of the book ends before it."""
    others = "\n".join(TEN)
    passages = [f"```{language}\n{others}\n{line}\n```"]

    judgement = judge_listing(f"{others}\n{commented}", passages)
    assert (judgement.verdict, judgement.support) == ("supported", 1.0)


def test_a_listing_that_is_not_read_to_its_end_is_not_supported() -> None:
    """What comes after the lines that are read may be anything."""
    lines = [f"valve_{number}.open(now)" for number in range(MAX_LINES)]
    passages = ["\n".join(lines)]

    assert judge_listing("\n".join(lines), passages).verdict == "supported"
    assert judge_listing("\n".join([*lines, "rm -rf /data"]), passages).verdict == "unconfirmed"
