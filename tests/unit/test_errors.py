"""The one file of errors has all of them."""

from __future__ import annotations

import importlib
import pkgutil
import re

import lectern
from lectern.domain import errors
from lectern.domain.errors import LecternError


def _subclasses(kind: type[LecternError]) -> set[type[LecternError]]:
    return {kind}.union(*(_subclasses(child) for child in kind.__subclasses__()))


def test_every_error_is_defined_in_one_file_and_drawn_there() -> None:
    """`domain/errors.py` has every `LecternError`, and its tree names each of them."""
    for module in pkgutil.walk_packages(lectern.__path__, "lectern."):
        if ".migrations" not in module.name:  # alembic imports those
            importlib.import_module(module.name)
    drawn = set(re.findall(r"\b[A-Z][A-Za-z]+\b", errors.__doc__ or ""))
    own_errors = {kind for kind in _subclasses(LecternError) if kind.__module__.startswith("lectern")}

    assert {kind.__name__ for kind in own_errors if kind.__module__ != errors.__name__} == set()
    assert {kind.__name__ for kind in own_errors} - drawn == set()
