"""Packages that only some settings need. They are installed with an extra of the package, and where one is missing the
error names the command that installs it."""

from __future__ import annotations

import importlib
from typing import Literal

from lectern.domain.errors import ConfigError

Extra = Literal["server", "cohere"]


def import_extra(package: str, *, extra: Extra, setting: str) -> None:
    """Import the package that a setting needs."""
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != package:
            raise  # the package is there and lacks something itself
        raise ConfigError(
            f"{setting} needs the package {package!r}, which is not installed; run: pip install 'lectern[{extra}]'"
        ) from exc
