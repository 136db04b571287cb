"""What `deploy/` says: the services of compose.yaml and their settings, with the values that an operator fills in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from tests.conftest import ROOT

DEPLOY = ROOT / "deploy"
VALUES = {"POSTGRES_PASSWORD": "a-password", "QDRANT_API_KEY": "a-key", "LECTERN_RATE_LIMIT": "100000"}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


@cache
def compose() -> dict[str, Any]:
    """compose.yaml, with anchors resolved."""
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def services() -> dict[str, dict[str, Any]]:
    """The services by name."""
    return dict(compose()["services"])


def filled(text: str, values: Mapping[str, str] = VALUES) -> str:
    """A value of compose.yaml with the operator's variables filled in, as `docker compose` does it."""

    def value(match: re.Match[str]) -> str:
        name, kind, otherwise = match.groups()
        if values.get(name):
            return values[name]
        assert kind == "-", f"{name} has no value and no default"
        return str(otherwise)

    return _VARIABLE.sub(value, text)


def environment(service: str, places: Mapping[str, str]) -> dict[str, str]:
    """The settings of a service, where every address and folder of compose.yaml is replaced by its place here."""
    settings = {}
    for name, written in services()[service]["environment"].items():
        text = filled(str(written))
        for place, actual in places.items():
            text = text.replace(place, actual)
        settings[name] = text
    return settings
