"""What pages of other origins may load besides the API: the widget's files, and the page for iframes."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.keys.conftest import PAGE, Site

ELSEWHERE = {"Origin": "https://elsewhere.example"}


@pytest.mark.parametrize(
    "path", ["/widget.js", "/widget/main.js", "/shared/api.js", "/style/ground.css", "/widget/strings/de.json"]
)
@pytest.mark.parametrize("origin", ["https://elsewhere.example", PAGE])
def test_every_page_may_load_the_widget(site: Site, path: str, origin: str) -> None:
    """Without a key and from any origin: the files are the same for everybody."""
    response = site.call("GET", path, headers={"Origin": origin})

    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize(
    "path", ["/", "/page/main.js", "/docs", "/health/live", "/openapi.json", "/books", "/widget/none.js"]
)
def test_nothing_else_is_opened_to_other_origins(site: Site, path: str) -> None:
    """Neither the page nor the API."""
    response = site.call("GET", path, headers=ELSEWHERE)

    assert "access-control-allow-origin" not in response.headers
    assert "cross-origin-resource-policy" not in response.headers


def test_an_iframe_is_for_the_origins_that_may_use_the_api(site: Site) -> None:
    """Those of publishable keys and of LECTERN_ORIGINS; the rest of the policy stays as strict as the page's."""
    policy = site.call("GET", "/embed/").headers["content-security-policy"]
    page = site.call("GET", "/").headers["content-security-policy"]

    assert ancestors(policy) == {PAGE, "http://127.0.0.1", "https://listed.example"}
    assert ancestors(page) == {"'none'"}
    assert policy.replace(policy_part(policy), policy_part(page)) == page


def test_without_origins_there_is_no_iframe(server: str) -> None:
    """A server without keys shows itself in no frame."""
    policy = httpx.get(f"{server}/embed/", timeout=120, trust_env=False).headers["content-security-policy"]

    assert ancestors(policy) == {"'none'"}


def policy_part(policy: str) -> str:
    """What a policy says about frames."""
    match = re.search(r"frame-ancestors [^;]+", policy)
    assert match
    return match.group()


def ancestors(policy: str) -> set[str]:
    """The origins that may show a page in a frame."""
    return set(policy_part(policy).split()[1:])
