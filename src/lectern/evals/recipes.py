"""The recipe of a run, so that two runs can be told apart. Two states of a checkout can have one version, so the code
that makes an index and the code that searches it are hashed as well."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import lectern
from lectern import __version__
from lectern.evals.metrics import RESAMPLES, SEED
from lectern.reading.chunking import READER_VERSION, ReadingRules
from lectern.retrieval.search import LEXICAL_WEIGHT, MIN_CANDIDATES

PACKAGES = ("numpy", "onnxruntime", "qdrant-edge-py", "tokenizers")
INDEXING_PACKAGES = ("reading", "text", "models", "index", "ingestion", "schemas", "domain")
SEARCH_PACKAGES = ("retrieval", "text", "index", "schemas", "domain")
DIGEST_LENGTH = 16  # hex digits

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
        "index_code": code_digest(INDEXING_PACKAGES),
        "search_code": code_digest(SEARCH_PACKAGES),
        **package_versions(),
        "seed": SEED,
        "resamples": RESAMPLES,
    }


def package_versions() -> dict[str, str]:
    """The versions of packages that could change a figure."""
    return {package: version(package) for package in PACKAGES}


@cache
def code_digest(packages: tuple[str, ...]) -> str:
    """A hash of the code of these packages of Lectern."""
    hasher = hashlib.sha256()
    for package in packages:
        root = Path(lectern.__file__).parent / package
        for file in sorted(root.rglob("*.py")):
            for part in (file.relative_to(root).as_posix().encode(), file.read_bytes()):
                hasher.update(hashlib.sha256(part).digest())
    return hasher.hexdigest()[:DIGEST_LENGTH]
