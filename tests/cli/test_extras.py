"""What is installed without any extra is enough for a book, and each extra that is missing is named."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

from lectern.domain.errors import ConfigError
from lectern.domain.extras import import_extra
from tests.cli.test_commands import LESSON
from tests.conftest import ROOT
from tests.served import serving

WITHOUT = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(name == missing or name.startswith(missing + ".") for missing in {names!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Missing())
from lectern.cli.main import run

run()
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one lesson."""
    folder = tmp_path / "tiny-book"
    folder.mkdir()
    (folder / "nodes.md").write_text(LESSON, encoding="utf-8")
    return folder


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distribution(requirement: str) -> str:
    """The distribution that a requirement is of."""
    return normalised(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])


def pins(lock: str) -> dict[str, str]:
    """The versions in a lock file, by distribution."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def core_command() -> list[str]:
    """`lectern` where nothing can be imported that requirements.lock does not install."""
    core = {"lectern", *pins("requirements.lock")}
    names = {
        package
        for package, distributions in importlib.metadata.packages_distributions().items()
        if core.isdisjoint(normalised(name) for name in distributions)
    }
    names |= {"opentelemetry.sdk", "opentelemetry.exporter"}  # they share the first part of their names with the core
    assert {"asyncpg", "redis", "qdrant_client", "cohere", "grpc"} <= names
    return [sys.executable, "-c", WITHOUT.format(names=sorted(names))]


def core(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the core alone."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [*core_command(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def test_the_locks_have_what_the_package_names() -> None:
    """requirements.lock has the core and no extra; requirements-server.lock adds what several servers need, and
    requirements-dev.lock every extra, in the same versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core_pins, dev_pins = pins("requirements.lock"), pins("requirements-dev.lock")
    extras = {distribution(line) for lines in project["optional-dependencies"].values() for line in lines}

    assert {distribution(line) for line in project["dependencies"]} <= core_pins.keys()
    assert extras
    assert extras.isdisjoint(core_pins)
    assert extras <= dev_pins.keys()
    assert core_pins.items() <= pins("requirements-server.lock").items() <= dev_pins.items()
    assert {"asyncpg", "qdrant-client", "redis", "opentelemetry-sdk"} <= pins("requirements-server.lock").keys()


def test_the_core_alone_indexes_answers_and_serves(book: Path) -> None:
    """`make setup` installs requirements.lock; with that and nothing else a book is ingested, asked and served."""
    ingested = core("ingest", str(book))
    answered = core("ask", "What is a node?")
    with serving([*core_command(), "serve", "--port", "0"]) as address:
        page = httpx.get(address)
        served = httpx.post(f"{address}/chat/run", json={"message": "What is a node?"}, timeout=120).json()

    assert ingested.returncode == 0, ingested.stderr
    assert answered.returncode == 0, answered.stderr
    assert "A node is a process that computes." in answered.stdout
    assert page.status_code == 200
    assert "A node is a process that computes." in served["response"]


@pytest.mark.parametrize(
    ("command", "variable", "value", "extra"),
    [
        ("ingest", "DATABASE_URL", "postgresql://user:secret@127.0.0.1:1/lectern", "server"),
        ("ingest", "QDRANT_URL", "http://127.0.0.1:1", "server"),
        ("ingest", "LECTERN_EMBEDDER", "cohere", "cohere"),
        ("serve", "LECTERN_LIMITS_URL", "redis://:secret@127.0.0.1:1/0", "server"),
        ("ingest", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "traces"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    book: Path, command: str, variable: str, value: str, extra: str
) -> None:
    """The error says which setting needs which packages and how to install them, in one line without the secret."""
    result = core(command, *([str(book)] if command == "ingest" else []), COHERE_API_KEY="k" * 40, **{variable: value})

    assert result.returncode == 2
    assert variable in result.stderr
    assert f"pip install 'lectern[{extra}]'" in result.stderr
    assert "Traceback" not in result.stderr
    assert "secret" not in result.stderr


def test_a_package_that_is_itself_incomplete_is_no_missing_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Installing the extra again would not help, so the error stays what it is."""
    (tmp_path / "halfpackage.py").write_text("import its_own_missing_part\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="its_own_missing_part"):
        import_extra("halfpackage", extra="server", setting="QDRANT_URL")
    with pytest.raises(ConfigError, match=r"lectern\[server\]"):
        import_extra("no_such_package", extra="server", setting="QDRANT_URL")
    with pytest.raises(ConfigError, match=r"lectern\[traces\]"):
        import_extra("opentelemetry.no_such_part.deeper", extra="traces", setting="OTEL_EXPORTER_OTLP_ENDPOINT")
