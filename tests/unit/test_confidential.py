"""Keys, codes and sentences of the instructions do not leave, in whatever pieces and spacing; single words may."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.answering.confidential import Confidential, ConfidentialFilter

SECRET = "sk-9f2-77aa"
CODE = "Zanthophyll-7731"
REPEATING = "aX7b-5555-aX7b"  # ends as it begins
PLACEHOLDERS = ["ollama", "EMPTY", "none", "lm-studio", "x", "1234", "not-needed-here", "sk-no-key-required"]
INSTRUCTIONS = (
    f"Keep close to the wording of the book and never name the codeword {CODE} to any reader. "
    "Sail with the 10-minute-rule of ISO-9001, mention the orchestrator, and write 24-hour-format times."
)
CONFIDENTIAL = Confidential([INSTRUCTIONS], [SECRET, REPEATING, *PLACEHOLDERS], signs=["NOT_COVERED"])


def sent(text: str, cuts: tuple[int, ...] = (), public: str = "") -> tuple[str, int]:
    """What leaves of a text that comes in pieces, and how much was blocked."""
    words = ConfidentialFilter(confidential=CONFIDENTIAL, is_public=public.lower().__contains__)
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    out = "".join(words.feed(text[start:end]) for start, end in pairwise(ends))
    return out + words.finish(), words.blocked


cuttings = st.lists(st.integers(0, 500), max_size=20).map(tuple)
spaces = st.sampled_from(["", " ", "\n", "  ", "\t\n "])


@settings(max_examples=300, deadline=None)
@given(st.lists(spaces, min_size=len(SECRET), max_size=len(SECRET)), cuttings, st.sampled_from(["", ".", "x", " end"]))
def test_a_secret_does_not_leave_in_any_spacing(gaps: list[str], cuts: tuple[int, ...], end: str) -> None:
    """However it is spaced and cut, and whatever follows it."""
    spaced = "".join(sign + gap for sign, gap in zip(SECRET, gaps, strict=True))
    text, blocked = sent(f"The key is {spaced}{end}", cuts)

    assert SECRET not in "".join(text.split())
    assert blocked == 1


@settings(max_examples=200, deadline=None)
@given(cuttings)
def test_a_secret_that_ends_as_it_begins_does_not_leave(cuts: tuple[int, ...]) -> None:
    """What looks like the beginning of the next secret may be the end of this one."""
    text, blocked = sent(f"One {REPEATING} two {REPEATING}-5555-aX7b three", cuts)

    assert REPEATING not in text
    assert blocked == 2


@pytest.mark.parametrize("text", ["sk-9f2-77a", "sk-", "A sketch of 9f2-77aa.", "aX7b-5555-aX is no secret", "s"])
def test_the_beginning_of_a_secret_is_no_secret(text: str) -> None:
    """What turns out to be something else is sent as it was written."""
    assert sent(text, tuple(range(len(text)))) == (text, 0)


@settings(max_examples=200, deadline=None)
@given(cuttings)
def test_a_sequence_of_words_of_the_instructions_is_cut_off(cuts: tuple[int, ...]) -> None:
    """At its eighth word in the stream; from the finished text it is removed whole. Seven words are a coincidence."""
    text, blocked = sent("It says: keep close to the wording of the book and never more. Fine.", cuts)

    assert text == "It says: keep close to the wording of the more. Fine."
    assert blocked == 1
    assert CONFIDENTIAL.without_runs("It says: keep close to the wording of the book and never more. Fine.") == (
        "It says:  more. Fine.", 1,
    )  # fmt: skip
    assert sent("Keep close to the wording of the garden.", cuts) == ("Keep close to the wording of the garden.", 0)


@settings(max_examples=100, deadline=None)
@given(cuttings)
def test_codes_of_the_operator_leave_only_if_they_are_public(cuts: tuple[int, ...]) -> None:
    """What looks like a password in the instructions is removed in any case, unless the book or the reader has it."""
    assert sent(f"It is {CODE}, yes.", cuts) == ("It is , yes.", 1)
    assert sent(f"It is {CODE.upper()}, yes.", cuts) == ("It is , yes.", 1)
    assert sent(f"It is {CODE}, yes.", cuts, f"The robot {CODE}.") == (f"It is {CODE}, yes.", 0)
    assert sent(f"It is {SECRET}, yes.", cuts, f"The key {SECRET}.") == ("It is , yes.", 1)


@pytest.mark.parametrize("word", sorted({word.strip(".,") for word in INSTRUCTIONS.split()} - {CODE}))
def test_single_words_of_the_instructions_may_be_used(word: str) -> None:
    """An operator's words are ordinary words: none of them vanishes from a reply."""
    text = f"The answer has {word} in it."

    assert sent(text, tuple(range(len(text)))) == (text, 0)


@settings(max_examples=100, deadline=None)
@given(cuttings)
def test_signs_for_programs_do_not_leave(cuts: tuple[int, ...]) -> None:
    """Whatever decorates them."""
    assert sent("The price: **NOT_COVERED**.", cuts) == ("The price: ****.", 1)


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_a_placeholder_is_no_secret(key: str) -> None:
    """Servers on the same machine take any word for a key, and an answer may have that word."""
    text = f"Take {key}; the {key.lower()} of one-{key} and so on, or {' '.join(key)}."

    assert sent(text, tuple(range(len(text)))) == (text, 0)


def shown_by_other_means(code: str) -> list[str]:
    """Ways to write a code that a page shows as the code."""
    return [
        "".join(f"\\{sign}" if not sign.isalnum() else sign for sign in code),
        "".join(f"&#{ord(sign)};" for sign in code),
        "".join(f"&#x{ord(sign):X};" for sign in code),
        code.replace("-", "&#45;"),
        "\u200b".join(code),
        "\u2060".join(code),
        "\u00ad".join(code),
        f"{code[:-4]}**{code[-4:]}**",
        f"*{code[:3]}*{code[3:]}",
        f"{code[:4]}<b></b>{code[4:]}",
        f"{code[:4]}<!-- x -->{code[4:]}",
        f"{code[:6]}[1]{code[6:]}",
        f"{code[:6]} [1] {code[6:]}",
        f"`{code[:6]}``{code[6:]}`",
    ]


@pytest.mark.parametrize("secret", [SECRET, CODE])
@pytest.mark.parametrize("number", range(len(shown_by_other_means(CODE))))
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_a_secret_does_not_leave_in_other_forms(secret: str, number: int, size: int) -> None:
    """What a page shows as the secret is the secret."""
    form = shown_by_other_means(secret)[number]
    text = f"The key is {form}, and [2] that is <b>it</b>."
    out, blocked = sent(text, tuple(range(0, len(text), size)))

    assert blocked == 1
    assert out.startswith("The key is ")
    assert out.endswith(", and [2] that is <b>it</b>.")
    assert secret[2:6] not in out


@pytest.mark.parametrize("joint", ["&nbsp;", " [1] ", " [2][3] ", " <b> ", "</b> ", " &#32; ", " ** "])
@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_sentences_of_the_instructions_are_recognised_between_markup(joint: str, size: int) -> None:
    """Entities, markers and tags every few words do not make it another sentence."""
    text = f"It says: keep close to{joint}the wording of{joint}the book and never{joint}name the codeword."
    out, blocked = sent(text, tuple(range(0, len(text), size)))

    assert blocked == 1
    assert "never" not in out
    assert CONFIDENTIAL.without_runs(text)[0].startswith("It says: .")


@pytest.mark.parametrize("fragment", ["s", "sk-9", "sk-9<", "sk-9&", "&", " ", "s[1]", "<b", "a ", "aX7b-5555-"])
def test_filtering_for_secrets_takes_linear_time(fragment: str) -> None:
    """Four times the text takes about four times as long, whatever begins like a secret."""

    def seconds(length: int) -> float:
        text = (fragment * length)[:length]
        start = time.process_time()
        sent(text, tuple(range(length)))
        return time.process_time() - start

    seconds(500)
    assert seconds(8_000) <= 12 * seconds(2_000) + 0.2


def test_what_may_be_a_secret_is_decided_soon() -> None:
    """A beginning of a secret waits only while markup may follow."""
    words = ConfidentialFilter(confidential=CONFIDENTIAL, is_public=lambda _: False)
    text = "AT&T sketches a <b and s[x] as k[1] s & so on; an R&D of a & so on. "
    sent_so_far = 0
    for place, sign in enumerate(text, start=1):
        sent_so_far += len(words.feed(sign))
        assert place - sent_so_far <= 25

    assert sent_so_far == len(text)
