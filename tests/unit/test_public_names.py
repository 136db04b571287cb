"""What programs may import, and what they find on a Lectern: a change here is a change for users."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import lectern

METHODS = """
ask book book_details books calibrate doctor ingest ingesting insights jobs lesson outline remove search stream
threads
"""  # in this order
EXPORTS = """
AgentConfig Answer BadInput BadManifest BookNotFound Busy Cancelled Citation ConfidenceMetrics ConfigError Conflict
Conversation Delta Entered EvidenceFound Exchange Findings Finished Forbidden Hit InUse IndexDamaged IndexMismatch
IngestionJob JobCancelled JobFailed Judged Lectern LecternError LessonsIndexed Message ModelDamaged Overloaded
Planned ProviderError ProviderRefused ProviderTimeout RETRIEVAL_TOOL RateLimited Refusal RemoteLectern Replied Reply
ReplyEvent Scope Settings SourceError Statement StoreUnavailable TooMany Unauthorised UnknownBook UnknownJob
UnknownLesson UnknownThread Working WrongBook connect execute_retrieval_tool open_lectern retrieve_documentation
views __version__
"""


def test_the_package_exports_these_names() -> None:
    """Every public name is in the table and can be imported; nothing else is public."""
    assert sorted(lectern.__all__) == sorted(EXPORTS.split())
    for name in lectern.__all__:
        assert getattr(lectern, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = lectern.nothing  # type: ignore[attr-defined]  # on purpose


def test_type_checkers_see_the_same_names() -> None:
    """What is imported for type checkers is what is loaded at run time."""
    tree = ast.parse(Path(lectern.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    exported = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert exported | {"__version__"} == set(lectern.__all__)


@pytest.mark.parametrize("kind", [lectern.Lectern, lectern.RemoteLectern])
def test_lectern_has_fifteen_public_methods(kind: type) -> None:
    """Here and on a running server a program finds the same ones."""
    public = [name for name in vars(kind) if not name.startswith("_")]

    assert sorted(public) == METHODS.split()


@pytest.mark.parametrize("name", METHODS.split())
def test_the_methods_take_the_same_arguments_here_and_there(name: str) -> None:
    """A program moves to a server by changing how it opens Lectern, and nothing else."""
    here, there = (inspect.getattr_static(kind, name) for kind in (lectern.Lectern, lectern.RemoteLectern))
    if isinstance(here, property):
        assert isinstance(there, property)
    else:
        assert list(inspect.signature(here).parameters) == list(inspect.signature(there).parameters)


def test_ask_and_stream_take_the_same_arguments() -> None:
    """Whoever goes over to a stream changes one word."""
    ask_signature, streamed = (inspect.signature(method) for method in (lectern.Lectern.ask, lectern.Lectern.stream))

    assert ask_signature.parameters == streamed.parameters
