"""Lectern: ask a Markdown book questions, and get answers with citations or an honest refusal.

async with open_lectern() as lectern:
    await lectern.ingest("my-book")
    reply = await lectern.ask("How do nodes communicate?")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lectern.version import __version__

if TYPE_CHECKING:
    from lectern.answering import views
    from lectern.app.open import Lectern, open_lectern
    from lectern.app.settings import Settings
    from lectern.domain.errors import LecternError
    from lectern.domain.replies import Answer, Exchange, Refusal
    from lectern.domain.scope import Scope

_HOMES = {
    "Answer": "lectern.domain.replies",
    "Exchange": "lectern.domain.replies",
    "Lectern": "lectern.app.open",
    "LecternError": "lectern.domain.errors",
    "Refusal": "lectern.domain.replies",
    "Scope": "lectern.domain.scope",
    "Settings": "lectern.app.settings",
    "open_lectern": "lectern.app.open",
}
_MODULES = {"views": "lectern.answering.views"}

__all__ = [
    "Answer",
    "Exchange",
    "Lectern",
    "LecternError",
    "Refusal",
    "Scope",
    "Settings",
    "__version__",
    "open_lectern",
    "views",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: `lectern --help` must not pay for what it does not need."""
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'lectern' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    return getattr(import_module(_HOMES[name]), name)
