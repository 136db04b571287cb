"""The local embedder: a vector depends on its text alone, windows lose nothing, damaged weights are refused."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.domain.errors import BadInput, ModelDamaged, OutOfResources
from lectern.models.local.embedder import MODEL, SPECIAL_TOKENS, LocalEmbedder, _model
from lectern.models.local.packaged_models import CHECKSUMS, TOKENIZER, WEIGHTS, WINDOW, read_verified, session
from lectern.models.windows import MAX_TRAIL_PIECES, heading

EMBEDDER = LocalEmbedder()
TEXTS = [
    "A node publishes messages on a topic.",
    "The robot arm has six joints, each driven by its own motor. " * 12,
    "import rclpy\n\nrclpy.init()\nnode = rclpy.create_node('talker')",
    "",
    "Ein Roboter fährt über die Brücke.",
    "A node publishes messages on a topic.",
    "word " * 250,
]
WORDS = st.sampled_from(
    "the robot publishes sensor_data on /cmd_vel, slowly. ROS2 disestablishmentarian 速度 über".split()
)
GAPS = st.sampled_from([" ", " ", " ", " ", "\n", "\n\n", ".\n\n", "  ", "\t", "\u00a0", "\r\n", " \u200b", "\u200b "])
ANYTHING = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


def pieces(text: str) -> int:
    """How much of the window a text takes, special pieces included."""
    return len(_model(WEIGHTS, os.getpid()).pieces(text)) + SPECIAL_TOKENS


def bodies(trail: list[str], text: str) -> list[str]:
    """The windows without the line that each must begin with."""
    head = heading(trail, _model(WEIGHTS, os.getpid()).pieces)
    windows = EMBEDDER.passages(trail, text)
    assert all(window.startswith(f"{head}\n") for window in windows) or not head
    return [window.removeprefix(f"{head}\n") for window in windows] if head else list(windows)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Prose of up to some hundred words, with breaks of every kind and now and then any characters at all."""
    seed, count = draw(st.randoms(use_true_random=False)), draw(st.integers(1, 700))
    words, gaps, odd = draw(st.lists(WORDS, min_size=5, max_size=30)), draw(st.lists(GAPS, min_size=3)), draw(ANYTHING)
    return "".join(
        seed.choice(words) + seed.choice(gaps) + (odd if seed.random() < 0.02 else "") for _ in range(count)
    ).strip()


async def test_a_vector_is_the_same_alone_in_a_batch_and_in_any_order() -> None:
    """Bit for bit: what stands beside a text does not change its vector."""
    alone = [(await EMBEDDER.embed([text], purpose="passage"))[0] for text in TEXTS]
    together = await EMBEDDER.embed(TEXTS, purpose="passage")
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    shuffled = await EMBEDDER.embed([TEXTS[place] for place in order], purpose="passage")

    assert together == alone
    assert shuffled == [alone[place] for place in order]


async def test_a_vector_is_the_same_when_several_calls_run_at_once() -> None:
    """Calls share the model, not each other's numbers."""
    expected = await EMBEDDER.embed(TEXTS, purpose="passage")

    for vectors in await asyncio.gather(*(EMBEDDER.embed(TEXTS, purpose="passage") for _ in range(4))):
        assert vectors == expected


async def test_a_short_question_is_embedded_as_a_passage_would_be() -> None:
    """Purposes differ only where a text is longer than the window."""
    assert await EMBEDDER.embed(TEXTS[:3], purpose="question") == await EMBEDDER.embed(TEXTS[:3], purpose="passage")


async def test_vectors_have_length_one() -> None:
    """Also those of nothing, and of a question of several windows; so none is zero or NaN."""
    vectors = await EMBEDDER.embed([*TEXTS, "why " * 600], purpose="question")

    assert [len(vector) for vector in vectors] == [EMBEDDER.dimensions] * len(vectors)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1] * len(vectors), abs=1e-5)


async def test_no_texts_give_no_vectors() -> None:
    """And nothing is asked of the model."""
    assert await EMBEDDER.embed([], purpose="passage") == []


async def test_a_paraphrase_is_nearer_than_another_subject() -> None:
    """The vectors mean something: the shipped weights are the right ones, pooled the right way."""
    question, same, unrelated = await EMBEDDER.embed(
        [
            "How do robots exchange messages?",
            "Nodes communicate by publishing to topics that other nodes subscribe to.",
            "Bread rises because yeast turns sugar into gas.",
        ],
        purpose="passage",
    )

    def cosine(first: list[float], two: list[float]) -> float:
        return (
            math.sumprod(first, two)
            if hasattr(math, "sumprod")
            else sum(a * b for a, b in zip(first, two, strict=True))
        )

    assert cosine(question, same) > 0.3
    assert cosine(question, unrelated) < 0.15


async def test_every_word_of_a_long_question_counts() -> None:
    """A question over the window is read in windows, not cut: its last words move its vector."""
    start = "Tell me about sensors and motors. " * 60
    first, second = await EMBEDDER.embed([start + "And about bread?", start + "And about stars?"], purpose="question")

    assert pieces(start) > WINDOW
    assert first != second


async def test_a_passage_over_the_window_is_refused_by_its_size() -> None:
    """The caller forgot passages(): an error with the number of pieces, never a silent cut."""
    with pytest.raises(ValueError, match="302 word pieces is over the window of 256"):
        await EMBEDDER.embed(["short", "word " * 300], purpose="passage")


async def test_marks_of_the_model_in_a_text_are_text() -> None:
    """A lesson on tokenizers may say [SEP]; that is not the end of anything."""
    assert pieces("[SEP]") == SPECIAL_TOKENS + len(["[", "sep", "]"])


async def test_half_a_character_is_the_callers_mistake() -> None:
    """A lone surrogate comes as an error that says so, for both purposes and for windows."""
    with pytest.raises(BadInput, match="surrogate"):
        await EMBEDDER.embed(["broken \ud800 text"], purpose="question")
    with pytest.raises(BadInput, match="surrogate"):
        EMBEDDER.passages([], "broken \ud800 text")


def test_a_chunk_that_fits_is_one_window() -> None:
    """Trail on the first line, then the text as it is."""
    assert EMBEDDER.passages(["Nodes", "Topics"], "A topic is\n\na bus. ") == ("Nodes > Topics\nA topic is\n\na bus. ",)
    assert EMBEDDER.passages([], "A topic.") == ("A topic.",)


@settings(max_examples=60, deadline=None)
@given(trail=st.lists(st.text("abc é速\n ", min_size=1, max_size=30), max_size=5), text=long_texts())
def test_windows_hold_every_word_in_order_under_their_trail(trail: list[str], text: str) -> None:
    """None is over the model's window, each begins with the trail, and together they are the text."""
    assert all(pieces(window) <= WINDOW for window in EMBEDDER.passages(trail, text))
    assert [word for body in bodies(trail, text) for word in body.split()] == text.split()


@settings(max_examples=40, deadline=None)
@given(unit=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5), count=st.integers(1, 900))
def test_a_word_longer_than_the_window_is_cut_but_kept(unit: str, count: int) -> None:
    """Any run of characters whatever: its windows put together are it again, but for white space at the cuts."""
    text = unit * count
    windows = EMBEDDER.passages(["Trail"], text)

    assert all(pieces(window) <= WINDOW for window in windows)
    assert "".join("".join(bodies(["Trail"], text)).split()) == "".join(text.split())


def test_halves_of_a_cut_word_are_counted_anew() -> None:
    """`enaan` is two pieces whole and three in halves, so what is left after a cut may be larger than it was before."""
    windows = EMBEDDER.passages([], "q/q/" + "enaan/" * 168)

    assert [pieces(window) <= WINDOW for window in windows] == [True] * 3


def test_windows_are_of_like_size_and_end_with_sentences() -> None:
    """Not one full window and a tiny rest, and no cut inside a sentence where there are ends of sentences."""
    text = " ".join(f"Sentence number {number} says something about robots and their sensors." for number in range(26))
    windows = bodies(["Robots"], text)
    sizes = [pieces(body) for body in windows]

    assert len(windows) == 2
    assert max(sizes) - min(sizes) < 30
    assert all(body.endswith("sensors.") for body in windows)


def test_windows_end_with_paragraphs_where_they_can() -> None:
    """A paragraph's end is taken before a line's, a line's before a sentence's."""
    paragraph = "One line of it. Two sentences.\nAnother line, rather longer than the first one of them.\n"
    windows = bodies([], "\n".join([paragraph] * 20))

    assert len(windows) > 1
    assert all(body.startswith("One line") and body.endswith("of them.") for body in windows)


@pytest.mark.parametrize("trail", [[f"Heading {number}" for number in range(60)], ["endless " * 500], ["x-" * 9000]])
def test_a_monstrous_trail_leaves_room_for_the_text(trail: list[str]) -> None:
    """Its last headings are kept, or the beginning of its last; the text has the larger part of each window."""
    windows = EMBEDDER.passages(trail, "Some words of the lesson. " * 100)
    head = windows[0].split("\n")[0]

    assert 0 < pieces(head) - SPECIAL_TOKENS <= MAX_TRAIL_PIECES
    assert head in " > ".join(trail)
    assert all(pieces(window) <= WINDOW for window in windows)


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, CHECKSUMS])
async def test_damaged_weights_are_refused(tmp_path: Path, name: str) -> None:
    """One changed byte in any of the files, and nothing of them is loaded."""
    folder = shutil.copytree(WEIGHTS, tmp_path / "weights")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)

    with pytest.raises(ModelDamaged, match="install lectern anew"):
        await LocalEmbedder(folder).embed(["text"], purpose="passage")


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, CHECKSUMS])
def test_missing_weights_are_named(tmp_path: Path, name: str) -> None:
    """The message says which file is not there."""
    folder = shutil.copytree(WEIGHTS, tmp_path / "weights")
    (folder / name).unlink()

    with pytest.raises(ModelDamaged, match=name):
        LocalEmbedder(folder).passages([], "text")


@pytest.mark.parametrize(
    ("error", "words"),
    [(OSError(errno.EMFILE, "Too many open files"), "ulimit -n"), (OSError(errno.ENOMEM, "no memory"), "memory")],
)
def test_a_shortage_is_not_a_damaged_model(monkeypatch: pytest.MonkeyPatch, error: OSError, words: str) -> None:
    """Where a file cannot be opened for want of descriptors or memory, nobody is told to install anything anew."""

    def fails(_: Path) -> bytes:
        raise error

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(OutOfResources, match=words):
        read_verified(WEIGHTS, MODEL)


def test_a_network_without_memory_is_not_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime's own words for too little memory are understood."""

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : Exception during loading: std::bad_alloc")

    monkeypatch.setattr("onnxruntime.InferenceSession", fails)
    with pytest.raises(OutOfResources, match="memory"):
        session(WEIGHTS, MODEL)


def test_the_module_loads_nothing_heavy() -> None:
    """`lectern --help` must not wait for a model's libraries."""
    code = (
        "import sys, lectern.models.local.embedder; print({'numpy', 'onnxruntime', 'tokenizers'} & sys.modules.keys())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "set()"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_or_spawned_process_gives_the_same_vectors() -> None:
    """Each process loads its own model and threads; a fork after use neither hangs nor differs."""
    code = """
import asyncio, os, pickle, sys
from lectern.models.local.embedder import LocalEmbedder
embedder = pickle.loads(bytes.fromhex(sys.argv[1]))
def vectors(): return asyncio.run(embedder.embed(["one text", "another text"], purpose="passage"))
here = vectors()
child = os.fork()
if child == 0:
    os._exit(0 if vectors() == here else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", code, pickle.dumps(EMBEDDER).hex()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (result.stdout.strip(), result.stderr) == ("0", "")


def test_the_fingerprint_names_provider_model_and_dimensions() -> None:
    """It is part of the collection's name: changing it means a rebuild."""
    assert (EMBEDDER.fingerprint, EMBEDDER.dimensions) == ("local/all-MiniLM-L6-v2-int8/384", 384)
