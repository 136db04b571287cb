"""Questions over HTTP, against a real server on the sample book."""

import re
import uuid

import httpx
import pytest

QUESTION = "What does a best effort publisher mean for a reliable subscriber?"
OFF_BOOK = "Which wine goes well with roast duck?"


def ask(server: str, **body: object) -> httpx.Response:
    """One POST to the chat endpoint."""
    return httpx.post(f"{server}/chat/run", json=body, timeout=120)


def test_a_question_gets_a_cited_answer(server: str) -> None:
    """The response has the design's fields, and every marker in it has its source."""
    session = str(uuid.uuid4())

    response = ask(server, message=QUESTION, session_id=session, stream=False, top_k=5)

    assert response.status_code == 200
    body = response.json()
    assert body["should_answer"]
    assert body["confidence_level"] in {"high", "medium", "low"}
    assert body["session_id"] == session
    again = httpx.get(f"{server}/chat/stream/{response.headers['X-Run-ID']}", timeout=120)
    assert "event: reply" in again.text
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", body["response"])}
    assert numbers == set(range(1, len(body["sources"]) + 1))
    assert numbers
    for source in body["sources"]:
        assert len(source["chunk_text"]) <= 500
        assert source["url"].startswith("/")


def test_the_fourth_documents_example_request_is_answered(server: str) -> None:
    """Its body as it stands, with its threshold of 0.7: an answer from passages at or above it, whose scores are the
    relevances, with the cosines beside them. The threshold costs no confidence."""
    request = {
        "message": "How do ROS 2 nodes communicate?",
        "session_id": "550e8400-e29b-41d4-a716-446655440000",
        "stream": False,
        "top_k": 5,
        "similarity_threshold": 0.7,
    }
    body = ask(server, **request).json()
    without_threshold = ask(server, message=request["message"], top_k=5).json()

    assert body["should_answer"]
    assert body["confidence"] == without_threshold["confidence"]
    assert body["session_id"] == request["session_id"]
    assert body["sources"]
    assert all(source["similarity_score"] == source["relevance"] >= 0.7 for source in body["sources"])
    assert all(source["similarity"] < source["relevance"] for source in body["sources"])
    assert 0.7 <= body["metrics"]["min_similarity"] <= body["metrics"]["average_similarity"]


def test_every_offline_sentence_stands_in_its_source(server: str) -> None:
    """The answer is made of the book's own words: each sentence is found in the passage it cites."""
    body = ask(server, message=QUESTION).json()

    lesson = {}
    for source in body["sources"]:
        lesson_view = httpx.get(f"{server}/lessons/{source['parent_doc_id']}", timeout=120).json()
        lesson[source["number"]] = " ".join(" ".join(piece["text"] for piece in lesson_view["chunks"]).split())
    for sentence, number in re.findall(r"\s*(.+?) \[(\d+)\]", body["response"]):
        assert sentence in lesson[int(number)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": ""}, "message: must have at least 1 character"),
        ({"message": "x" * 1001}, "message: must have at most 1000 characters"),
        ({"message": "hello", "sesion_id": "x"}, "sesion_id: is not known here; check its spelling, or leave it out"),
    ],
)
def test_what_is_wrong_is_said_in_words(server: str, body: dict[str, str], words: str) -> None:
    """A person can act on the detail: it speaks of characters and of what to do."""
    assert ask(server, **body).json()["detail"] == words


def test_what_the_book_does_not_say_is_refused(server: str) -> None:
    """A refusal is a normal reply: 200, the fixed sentence, no source, a reason and the nearest lessons."""
    response = ask(server, message=OFF_BOOK)

    assert response.status_code == 200
    body = response.json()
    assert body["response"] == "I couldn't find that information in the book."
    assert (body["should_answer"], body["confidence_level"], body["sources"]) == (False, "insufficient", [])
    assert body["reason"] in {"weak_evidence", "no_results"}
    assert body["confidence"] < 0.6
    assert len(body["nearest"]) <= 3


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "message"),
        ({"message": "   "}, 422, "message"),
        ({"message": "x" * 1001}, 422, "message"),
        ({"message": "hello\x00"}, 422, "message"),
        ({"message": "hello", "top_k": 11}, 422, "top_k"),
        ({"message": "hello", "session_id": "not-a-uuid"}, 422, "session_id"),
        ({"message": "hello", "similarity_threshold": 1.5}, 422, "similarity_threshold"),
        ({"message": "hello", "book_id": "no-such-book"}, 404, "book_id"),
        ({"message": "hello", "module_filter": "no-such-module"}, 422, "module_filter"),
        ({"message": "hello", "proficiency_levels": []}, 422, "proficiency_levels"),
        ({"message": "hello", "chapter_min": 5, "chapter_max": 2}, 422, "chapter_min"),
        ({"message": "hello", "unknown": 1}, 422, "unknown"),
    ],
)
def test_bad_input_is_a_problem_that_names_the_field(
    server: str, body: dict[str, object], status: int, field: str
) -> None:
    """Every error has one shape, says which field is meant, and shows nothing of the inside."""
    response = ask(server, **body)

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert problem["field"] == field
    assert "Traceback" not in response.text


def test_filters_hold_and_are_echoed(server: str) -> None:
    """A search within a module shows only that module, and says so."""
    response = httpx.post(
        f"{server}/search", json={"text": "sensor noise", "module_filter": "gazebo", "limit": 20}, timeout=120
    ).json()

    assert response["results"]
    assert {result["module"] for result in response["results"]} == {"gazebo"}
    assert response["module_filter"] == response["filters"]["module_filter"] == "gazebo"
    assert [result["rank"] for result in response["results"]] == list(range(1, len(response["results"]) + 1))


def test_a_foreign_host_name_is_refused(server: str) -> None:
    """A DNS name rebound to this machine cannot read a book."""
    assert httpx.get(f"{server}/books", headers={"Host": "evil.example"}).status_code == 400


def test_an_unknown_lesson_is_404(server: str) -> None:
    """An id the book does not have is not found, as a problem."""
    response = httpx.get(f"{server}/lessons/{uuid.uuid4()}")

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"), [("GET", "/chat/run", "POST"), ("GET", "/search", "POST"), ("PUT", "/", "GET")]
)
def test_a_wrong_method_is_told_the_right_one(server: str, method: str, path: str, allowed: str) -> None:
    """A path that exists is not called unknown because it was asked by another method."""
    response = httpx.request(method, f"{server}{path}")

    assert response.status_code == 405
    assert allowed in response.headers["allow"]
    assert "/docs" in response.json()["detail"]


def test_a_path_that_is_not_there_points_to_the_description(server: str) -> None:
    """What no route answers is a problem that says where the routes are listed."""
    response = httpx.get(f"{server}/nothing/here")

    assert response.status_code == 404
    assert "/docs" in response.json()["detail"]


def test_health_and_page_answer(server: str) -> None:
    """Live, ready, the page and the API's description are there, with a policy that forbids inline scripts."""
    for path in ("/health/live", "/health/ready", "/", "/page/main.js", "/openapi.json", "/docs"):
        response = httpx.get(f"{server}{path}")
        assert response.status_code == 200, path
        assert "default-src 'self'" in response.headers["content-security-policy"]
