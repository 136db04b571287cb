"""Packages that only some settings need. They are installed with an extra of the package, and where one is missing the
error names the command that installs it."""

from __future__ import annotations

import importlib
from typing import Literal

from lectern.domain.errors import ConfigError

Extra = Literal["server", "cohere", "traces"]


def import_extra(package: str, *, extra: Extra, setting: str) -> None:
    """Import the package that a setting needs. A dotted name is one package among those that share the first part."""
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as exc:
        missing = f"{exc.name}."
        if not missing.startswith(f"{package}.") and not f"{package}.".startswith(missing):
            raise  # the package is there and lacks something itself
        raise ConfigError(
            f"{setting} needs the package {package!r}, which is not installed; run: pip install 'lectern[{extra}]'"
        ) from exc
