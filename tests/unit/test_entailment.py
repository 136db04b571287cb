"""The judge's network: its number depends on the two texts alone, what it cannot read it does not judge, and damaged
weights are refused."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lectern.domain.errors import ModelDamaged
from lectern.models.local import pairs
from lectern.models.local.entailment import (
    JUDGE,
    MAX_LOG_ODDS,
    MAX_STATEMENT_TOKENS,
    MODEL,
    SPECIAL_TOKENS,
    LocalEntailment,
)
from lectern.models.local.entailment import log_odds as odds_by
from lectern.models.local.packaged_models import CHECKSUMS, WINDOW

NETWORK = LocalEntailment()
EVIDENCE = "The pump starts at six in the morning. It does not start when the tank holds less than 40 litres."
STATEMENTS = [
    "In the morning, the pump begins to run at six.",
    "With under 40 litres in the tank, the pump stays off.",
    "The pump starts even when the tank is almost empty.",
    "Ein Satz in einer anderen Sprache.",
    "[SEP] is what this one starts with.",
]


class FixedOdds:
    """A session that gives what it was told, and keeps what it was given."""

    def __init__(self, whole: float, wrong: float = 0.0) -> None:
        self.whole, self.wrong = whole, wrong
        self.ids: list[int] = []

    def run(self, _: None, inputs: dict[str, Any]) -> list[Any]:
        """Scores as the network gives them: two for each piece."""
        self.ids = inputs["input_ids"][0].tolist()
        scores = np.full((1, len(self.ids), 2), self.wrong, np.float32)
        scores[0, 0, 0] = self.whole
        return [scores]


def reader(session: FixedOdds) -> pairs.PairReader:
    """The real tokenizer with another network."""
    real = pairs.reader(JUDGE, MODEL)
    return pairs.PairReader(MODEL, real.tokenizer, session, real.cls_id, real.sep_id)


async def log_odds(statement: str, evidence: str = EVIDENCE, network: LocalEntailment = NETWORK) -> float:
    """A number where one is expected."""
    odds = await network.log_odds(statement, evidence)
    assert odds is not None
    return odds


async def test_the_same_texts_give_the_same_number() -> None:
    """To the last bit: alone, again, and when several ask at once."""
    first = [await log_odds(statement) for statement in STATEMENTS]
    again = [await log_odds(statement, network=LocalEntailment()) for statement in reversed(STATEMENTS)]
    at_once = await asyncio.gather(*(log_odds(statement) for statement in STATEMENTS * 4))

    assert again == first[::-1]
    assert at_once == first * 4


async def test_what_the_evidence_says_is_likelier_than_its_opposite() -> None:
    """The shipped weights are the right ones, read the right way round."""
    _, true, false = [await log_odds(statement) for statement in STATEMENTS[:3]]

    assert true > 1
    assert false < -1


async def test_a_statement_that_is_too_long_is_not_judged() -> None:
    """None, not a number for the part that would fit; nor is there one for nothing at all."""
    session = FixedOdds(1.0)

    assert odds_by(reader(session), "word " * MAX_STATEMENT_TOKENS, EVIDENCE) is not None
    assert await NETWORK.log_odds("word " * MAX_STATEMENT_TOKENS, EVIDENCE) is not None
    assert await NETWORK.log_odds("word " * (MAX_STATEMENT_TOKENS + 1), EVIDENCE) is None
    assert await NETWORK.log_odds("", EVIDENCE) is None
    assert await NETWORK.log_odds(" \n", EVIDENCE) is None


async def test_evidence_beyond_the_window_is_not_read() -> None:
    """It is cut at the window's end, never the statement: what comes after changes nothing, what comes before does."""
    filler, session = "The garden has many flowers. " * 60, FixedOdds(1.0)
    odds_by(reader(session), "The pump starts.", filler)

    assert len(session.ids) == WINDOW
    assert len(session.ids) - session.ids.index(session.ids[-1]) - 2 == WINDOW - SPECIAL_TOKENS - len(
        "the pump starts .".split()
    )
    assert await log_odds(STATEMENTS[0], filler + EVIDENCE) == await log_odds(STATEMENTS[0], filler)
    assert await log_odds(STATEMENTS[0], EVIDENCE + filler) != await log_odds(STATEMENTS[0], filler)


def test_marks_of_the_network_in_a_text_are_text() -> None:
    """A statement may say [SEP]; it still ends where it ends."""
    session = FixedOdds(1.0)
    odds_by(reader(session), "[SEP]", "[CLS]")
    opens, parts = session.ids[0], session.ids[-1]

    assert (session.ids.count(opens), session.ids.count(parts)) == (1, 2)


@pytest.mark.parametrize(
    ("whole", "wrong"), [(float("nan"), 0.0), (0.0, float("nan")), (float("inf"), 0.0), (0.0, float("-inf"))]
)
def test_what_is_no_number_is_refused(whole: float, wrong: float) -> None:
    """NaN and infinities mean a damaged network; they never become a verdict."""
    with pytest.raises(ModelDamaged, match="install lectern anew"):
        odds_by(reader(FixedOdds(whole, wrong)), "The pump starts.", EVIDENCE)


def test_the_whole_and_its_pieces_make_one_number() -> None:
    """The statement is as wrong as its pieces together, and no surer than 20 either way."""
    pieces = len("the pump starts .".split())

    assert odds_by(reader(FixedOdds(3.0, 1.0)), "The pump starts.", EVIDENCE) == pytest.approx(3 - (1 + np.log(pieces)))
    assert odds_by(reader(FixedOdds(500.0)), "The pump starts.", EVIDENCE) == MAX_LOG_ODDS
    assert odds_by(reader(FixedOdds(-500.0)), "The pump starts.", EVIDENCE) == -MAX_LOG_ODDS
    assert odds_by(reader(FixedOdds(0.0, 5000.0)), "The pump starts.", EVIDENCE) == -MAX_LOG_ODDS


@pytest.mark.parametrize("name", [MODEL, CHECKSUMS])
async def test_damaged_weights_are_refused(tmp_path: Path, name: str) -> None:
    """One changed byte in either file, and nothing is loaded; the message says what to do."""
    folder = shutil.copytree(JUDGE, tmp_path / "judge")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)

    with pytest.raises(ModelDamaged, match="install lectern anew"):
        await LocalEntailment(folder).log_odds("text", EVIDENCE)


@pytest.mark.parametrize("name", [MODEL, CHECKSUMS])
async def test_missing_weights_are_named(tmp_path: Path, name: str) -> None:
    """The message says which file is not there, and what to do."""
    folder = shutil.copytree(JUDGE, tmp_path / "judge")
    (folder / name).unlink()

    with pytest.raises(ModelDamaged, match=rf"{name}.*install lectern anew"):
        await LocalEntailment(folder).log_odds("text", EVIDENCE)


def test_the_module_loads_nothing_heavy() -> None:
    """`lectern --help` must not wait for a model's libraries."""
    heavy = "{'numpy', 'onnxruntime', 'tokenizers'}"
    code = f"import sys, lectern.models.local.entailment; print({heavy} & sys.modules.keys())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "set()"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_or_spawned_process_gives_the_same_number() -> None:
    """Each process loads its own network and threads; a fork after use neither hangs nor differs."""
    code = """
import asyncio, os, pickle, sys
network, statement, evidence = pickle.loads(bytes.fromhex(sys.argv[1]))
async def several():  # so that every thread has been busy
    return await asyncio.gather(*(network.log_odds(statement, evidence) for _ in range(4 * os.cpu_count())))
def odds(): return set(asyncio.run(several()))
here = odds()
child = os.fork()
if child == 0:
    os._exit(0 if odds() == here else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *here)
"""
    here = asyncio.run(log_odds(STATEMENTS[0]))
    pickled = pickle.dumps((NETWORK, STATEMENTS[0], EVIDENCE)).hex()
    command = [sys.executable, "-W", "ignore", "-c", code, pickled]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (result.stdout.split(), result.stderr) == (["0", str(here)], "")
