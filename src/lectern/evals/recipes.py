"""The recipe: everything that could make two runs differ. Versions alone do not tell two states of a checkout apart, so
the code that makes an index, and the code that searches it, are hashed as well."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import lectern
from lectern.evals.metrics import RESAMPLES, SEED
from lectern.reading.rules import READER_VERSION, ReadingRules
from lectern.retrieval.fusion import LEXICAL_WEIGHT
from lectern.retrieval.search import MIN_CANDIDATES
from lectern.version import __version__

PACKAGES = ("numpy", "onnxruntime", "qdrant-edge-py", "tokenizers")
MAKES_AN_INDEX = ("reading", "models", "index", "ingestion")
SEARCHES_IT = ("retrieval", "index")
SHOWN = 16  # hex digits of a hash

Recipe = dict[str, str | int | float]


def recipe(fingerprint: str, rules: ReadingRules) -> Recipe:
    """What a run was made with."""
    return {
        "lectern": __version__,
        "embedder": fingerprint,
        "reader": READER_VERSION,
        "chunk_tokens": rules.target_tokens,
        "lexical_weight": LEXICAL_WEIGHT,
        "candidates": MIN_CANDIDATES,
        "index_code": code_digest(MAKES_AN_INDEX),
        "search_code": code_digest(SEARCHES_IT),
        **package_versions(),
        "seed": SEED,
        "resamples": RESAMPLES,
    }


def package_versions() -> dict[str, str]:
    """Of the packages that could move a figure."""
    return {package: version(package) for package in PACKAGES}


@cache
def code_digest(packages: tuple[str, ...]) -> str:
    """One hash over the code of these packages of ours."""
    whole = hashlib.sha256()
    for package in packages:
        root = Path(lectern.__file__).parent / package
        for file in sorted(root.rglob("*.py")):
            for part in (file.relative_to(root).as_posix().encode(), file.read_bytes()):
                whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:SHOWN]
