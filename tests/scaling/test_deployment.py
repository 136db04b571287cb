"""`deploy/` agrees with itself and with the code: services, images, settings, addresses and ports."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from lectern.app.settings import Settings, variables
from tests.conftest import ROOT
from tests.scaling.deployment import DEPLOY, VALUES, compose, environment, services
from tests.scaling.topology import ROLES, SERVERS

PORTS = {"postgres": 5432, "redis": 6379, **{f"qdrant-{number}": 6333 for number in (1, 2, 3)}}
IMAGES = {name: service["image"] for name, service in services().items()}


def settings_of(service: str) -> dict[str, str]:
    """The settings of a server, filled in; an empty one is not set."""
    return {name: value for name, value in environment(service, {}).items() if value}


def test_the_services_are_those_that_the_process_test_starts() -> None:
    """compose.yaml and the test of processes have the same parts."""
    assert set(services()) == set(ROLES)
    assert services()["api-1"] == services()["api-2"]


@pytest.mark.parametrize("service", IMAGES)
def test_an_image_has_a_fixed_version(service: str) -> None:
    """No image changes under an operator's hands."""
    assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+(\.\d+)?", IMAGES[service])


def test_the_settings_are_known_and_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable of a server is one that Lectern reads, with a value that it takes."""
    settings = settings_of("api-1")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert settings.keys() <= variables().keys()
    loaded = Settings()
    assert loaded.postgres_connections * len(SERVERS) < 97  # of PostgreSQL's 100, three are for its superuser
    assert loaded.secrets()


def test_every_address_is_a_service_with_its_port() -> None:
    """What the servers call, and what the nodes join, is there."""
    text = " ".join(settings_of("api-1").values())
    addresses = [urlsplit(word) for word in re.split(r"[\s,]+", text) if "://" in word]
    called = {(address.hostname, address.port) for address in addresses}

    assert {(name, port) for name, port in called if name in PORTS} == called
    assert called >= {("postgres", 5432), ("redis", 6379), ("qdrant-1", 6333)}
    for number in (1, 2, 3):
        command = services()[f"qdrant-{number}"]["command"]
        assert f"http://qdrant-{number}:6335" in command
        assert number == 1 or "http://qdrant-1:6335" in command
        assert services()[f"qdrant-{number}"]["environment"]["QDRANT__CLUSTER__ENABLED"] == "true"


def test_the_proxy_knows_the_servers_and_lets_streams_pass() -> None:
    """The proxy asks both servers at the port on which they listen, buffers nothing, and names its clients."""
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    [port] = re.findall(r"^EXPOSE (\d+)$", dockerfile, re.MULTILINE)
    [read_timeout] = re.findall(r"proxy_read_timeout (\d+)s;", site)

    assert re.findall(r"^\s+server (\S+) ", site, re.MULTILINE) == [f"{name}:{port}" for name in SERVERS]
    assert "proxy_buffering off;" in site
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in site
    assert int(read_timeout) > Settings().turn_budget
    subnet: Any = compose()["networks"]["default"]["ipam"]["config"][0]["subnet"]
    assert settings_of("api-1")["LECTERN_PROXIES"] == subnet


def test_every_volume_is_declared_and_every_secret_has_to_be_set() -> None:
    """No data is in an anonymous volume, and no password has a default."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    named = {volume.partition(":")[0] for service in services().values() for volume in service.get("volumes", ())}

    assert {name for name in named if not name.startswith((".", "$"))} == set(compose()["volumes"])
    for name in ("POSTGRES_PASSWORD", "QDRANT_API_KEY"):
        assert set(re.findall(rf"\$\{{{name}(.)", text)) == {":"}
        assert f"{name}:-" not in text
        assert name in VALUES


def test_the_image_copies_what_is_there_and_installs_with_hashes() -> None:
    """Each COPY has its source, which the ignore file lets in, and nothing unpinned is installed."""
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [source for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE) for source in line.split()]

    assert copied
    assert all((ROOT / source).exists() for source in copied)
    assert {f"!{source}" for source in copied} <= set(let_in)
    installs = re.findall(r"pip install (.*)", dockerfile)
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
