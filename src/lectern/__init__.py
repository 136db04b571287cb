"""Lectern: ask a Markdown book questions, and get answers with citations or an honest refusal.

async with open_lectern() as lectern:
    await lectern.ingest("my-book")
    reply = await lectern.ask("How do nodes communicate?")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"


if TYPE_CHECKING:
    from lectern.answering import views
    from lectern.app.agent_config import AgentConfig
    from lectern.app.client import RemoteLectern, connect
    from lectern.app.lectern import Lectern
    from lectern.app.open import open_lectern
    from lectern.app.retrieval_tool import execute_retrieval_tool, retrieve_documentation
    from lectern.app.settings import Settings
    from lectern.domain.conversation import Conversation
    from lectern.domain.errors import (
        BadInput,
        BadManifest,
        BookNotFound,
        Busy,
        Cancelled,
        ConfigError,
        Conflict,
        Forbidden,
        IndexDamaged,
        IndexMismatch,
        InUse,
        JobCancelled,
        JobFailed,
        LecternError,
        ModelDamaged,
        Overloaded,
        ProviderError,
        ProviderRefused,
        ProviderTimeout,
        RateLimited,
        SourceError,
        StoreUnavailable,
        TooMany,
        Unauthorised,
        UnknownBook,
        UnknownJob,
        UnknownLesson,
        UnknownThread,
        WrongBook,
    )
    from lectern.domain.evidence import ConfidenceMetrics, Findings, Hit
    from lectern.domain.jobs import Finished, IngestionJob, LessonsIndexed, Planned, Working
    from lectern.domain.replies import (
        Answer,
        Citation,
        Delta,
        Entered,
        EvidenceFound,
        Exchange,
        Judged,
        Refusal,
        Replied,
        Reply,
        ReplyEvent,
        Statement,
    )
    from lectern.domain.scope import Scope
    from lectern.domain.threads import Message
    from lectern.schemas.tool_response import RETRIEVAL_TOOL

_MODULE_OF = {
    "lectern.app.agent_config": "AgentConfig",
    "lectern.app.client": "RemoteLectern connect",
    "lectern.app.lectern": "Lectern",
    "lectern.app.open": "open_lectern",
    "lectern.app.retrieval_tool": "execute_retrieval_tool retrieve_documentation",
    "lectern.app.settings": "Settings",
    "lectern.domain.conversation": "Conversation",
    "lectern.domain.errors": (
        "BadInput BadManifest BookNotFound Busy Cancelled ConfigError Conflict Forbidden IndexDamaged IndexMismatch "
        "InUse JobCancelled JobFailed LecternError ModelDamaged Overloaded ProviderError ProviderRefused "
        "ProviderTimeout RateLimited SourceError StoreUnavailable TooMany Unauthorised UnknownBook UnknownJob "
        "UnknownLesson UnknownThread WrongBook"
    ),
    "lectern.domain.evidence": "ConfidenceMetrics Findings Hit",
    "lectern.domain.jobs": "Finished IngestionJob LessonsIndexed Planned Working",
    "lectern.domain.replies": (
        "Answer Citation Delta Entered EvidenceFound Exchange Judged Refusal Replied Reply ReplyEvent Statement"
    ),
    "lectern.domain.scope": "Scope",
    "lectern.domain.threads": "Message",
    "lectern.schemas.tool_response": "RETRIEVAL_TOOL",
}
_HOMES = {name: module for module, names in _MODULE_OF.items() for name in names.split()}

__all__ = [*sorted(_HOMES), "__version__", "views"]  # noqa: PLE0604  # the table above is the list


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: `lectern --help` must not pay for what it does not need."""
    from importlib import import_module

    if name == "views":
        return import_module("lectern.answering.views")
    if name not in _HOMES:
        raise AttributeError(f"module 'lectern' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
