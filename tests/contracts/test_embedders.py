"""What every embedder promises; each adapter inherits the suite. Those that work over a network do so through their
provider's own SDK and real HTTP; what they promise when that fails stands in `test_embedder_faults`."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from lectern import Settings, open_lectern
from lectern.domain.errors import BadInput, ConfigError
from lectern.models.cohere import CohereEmbedder
from lectern.models.local.embedder import LocalEmbedder
from lectern.models.openai import OpenAIEmbedder
from lectern.ports.index import Embedder
from tests.answering.scripted import write_book
from tests.fakeai import FakeAI, Step, fake_ai
from tests.remotes import BATCHES, CANARY, TEXTS, AtCohere, AtOpenAI, OverHTTP, options_of

LONG_TEXT = "\n\n".join(f"Paragraph {n}: the arm moves joint {n} by {n * 7} degrees, then waits." for n in range(700))


def words(text: str) -> list[str]:
    """What a reader would call words."""
    return re.findall(r"\w+", text)


class EmbedderContract:
    """One vector a text, in order, a function of the text alone; and no text is cut."""

    async def test_the_fingerprint_names_provider_model_and_dimensions(self, embedder: Embedder) -> None:
        """Collections are named by it, so two models can never share one."""
        provider, model, dimensions = embedder.fingerprint.split("/")

        assert provider
        assert model
        assert int(dimensions) == embedder.dimensions

    async def test_vectors_are_fit_for_the_index(self, embedder: Embedder) -> None:
        """Right in number and length, finite and not zero."""
        vectors = await embedder.embed(TEXTS, purpose="passage")

        assert len(vectors) == len(TEXTS)
        assert {len(vector) for vector in vectors} == {embedder.dimensions}
        assert all(isinstance(number, float) and math.isfinite(number) for vector in vectors for number in vector)
        assert all(math.hypot(*vector) > 0 for vector in vectors)

    async def test_order_is_kept(self, embedder: Embedder) -> None:
        """Whatever is done to batches inside, the third vector is the third text's."""
        forward = await embedder.embed(TEXTS, purpose="passage")
        backward = await embedder.embed(TEXTS[::-1], purpose="passage")

        assert forward == backward[::-1]
        assert len({tuple(vector) for vector in forward}) == len(TEXTS)

    async def test_a_vector_is_a_function_of_its_text(self, embedder: Embedder) -> None:
        """Bit-equal alone, beside others, and twice in one call."""
        [alone] = await embedder.embed([TEXTS[1]], purpose="passage")
        among = await embedder.embed([*TEXTS, TEXTS[1]], purpose="passage")

        assert among[1] == alone
        assert among[-1] == alone

    async def test_nothing_gives_nothing(self, embedder: Embedder) -> None:
        """No text, no vector, no error."""
        assert await embedder.embed([], purpose="passage") == []

    async def test_a_short_chunk_is_one_window(self, embedder: Embedder) -> None:
        """Trail and text are read together."""
        [window] = embedder.passages(("Robots", "Joints"), "An arm has joints.")

        assert words(window) == ["Robots", "Joints", "An", "arm", "has", "joints"]

    async def test_windows_lose_no_word(self, embedder: Embedder) -> None:
        """However long a chunk is, every word is in a window, in order, under its trail; and no window is refused."""
        windows = embedder.passages(("Robots", "Joints"), LONG_TEXT)
        read = [words(window) for window in windows]

        assert len(windows) > 1
        assert all(window[:2] == ["Robots", "Joints"] for window in read)
        assert [word for window in read for word in window[2:]] == words(LONG_TEXT)
        assert len(await embedder.embed(windows[:3], purpose="passage")) == 3

    async def test_questions_are_embedded_too(self, embedder: Embedder) -> None:
        """The nearest passage to a question is the one that shares its words."""
        [question] = await embedder.embed(["Which machine is a robot?"], purpose="question")
        passages = await embedder.embed(TEXTS, purpose="passage")
        near = [sum(a * b for a, b in zip(question, passage, strict=True)) for passage in passages]

        assert near.index(max(near)) == 1


class RemoteContract(OverHTTP, EmbedderContract):
    """Batches, and what is refused before anything is sent."""

    @pytest.fixture
    async def embedder(self, ai: FakeAI) -> AsyncIterator[Embedder]:
        """The adapter as it ships."""
        async with aclosing(self.make(ai.url)) as embedder:
            yield embedder

    async def test_texts_of_like_length_go_together(self, ai: FakeAI) -> None:
        """Requests are sorted by length and hold no more texts than they may; a text that comes twice is sent once."""
        async with aclosing(self.make(ai.url, options_of())) as embedder:
            await embedder.embed([*TEXTS, *TEXTS], purpose="passage")

        assert [received.texts for received in ai.received] == BATCHES

    async def test_no_more_at_once_than_agreed(self, ai: FakeAI) -> None:
        """Concurrency is used, and bounded."""
        ai.script(then=Step(delay=0.05))
        async with aclosing(self.make(ai.url, options_of(concurrency=2, max_texts=1))) as embedder:
            await embedder.embed(TEXTS, purpose="passage")

        assert ai.most_at_once == 2
        assert len(ai.received) == len(TEXTS)

    async def test_progress_is_reported(self, ai: FakeAI) -> None:
        """After every request, how many texts of how many are done."""
        progress_calls: list[tuple[int, int]] = []
        options = options_of(progress=lambda done_count, total: progress_calls.append((done_count, total)))
        async with aclosing(self.make(ai.url, options)) as embedder:
            await embedder.embed(TEXTS, purpose="passage")

        assert progress_calls == [(2, 6), (4, 6), (6, 6)]

    async def test_a_lone_surrogate_is_bad_input(self, embedder: Embedder, ai: FakeAI) -> None:
        """What cannot be written as UTF-8 is the caller's to mend, and is never sent."""
        with pytest.raises(BadInput, match="surrogate"):
            await embedder.embed([*TEXTS, "half a \ud800 character"], purpose="question")

        assert ai.received == []

    @pytest.mark.parametrize("key", ["", "  ", f"{CANARY}\nX: 1", f"{CANARY}é", f"{CANARY} {CANARY}"])
    def test_a_key_that_cannot_be_sent_is_refused(self, key: str) -> None:
        """Before anything is sent, by the name of its setting, and without repeating it."""
        with pytest.raises(ConfigError, match="_API_KEY") as caught:
            self.make("http://127.0.0.1:1", key=key)

        assert CANARY not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "api.example.com",
            "ftp://example.com",
            f"http://me:{CANARY}@[::1]",
            f"http://[::1]?k={CANARY}",
            "http://[",
        ],
    )
    def test_an_address_that_cannot_be_logged_is_refused(self, url: str) -> None:
        """HTTP libraries log addresses, so one with a password in it is never used, nor repeated."""
        with pytest.raises(ConfigError, match=r"http|password") as caught:
            self.make(url)

        assert CANARY not in str(caught.value)


class TestOpenAI(AtOpenAI, RemoteContract):
    """What OpenAI has of its own."""

    async def test_what_is_sent(self, embedder: Embedder, ai: FakeAI) -> None:
        """The model's name and the texts; passages and questions are alike to it."""
        passage = await embedder.embed(TEXTS, purpose="passage")
        question = await embedder.embed(TEXTS, purpose="question")

        assert embedder.fingerprint == "openai/text-embedding-3-small/1536"
        assert passage == question
        assert [received.path for received in ai.received] == ["/v1/embeddings"] * 2
        assert {received.body["model"] for received in ai.received} == {"text-embedding-3-small"}

    async def test_vectors_are_placed_by_their_index(self, embedder: Embedder, ai: FakeAI) -> None:
        """A server may answer in another order, as long as it says which vector is whose."""
        calm = await embedder.embed(TEXTS, purpose="passage")
        ai.script(Step(shuffled=True))

        assert await embedder.embed(TEXTS, purpose="passage") == calm

    async def test_servers_without_base64_will_do(self, embedder: Embedder, ai: FakeAI) -> None:
        """Numbers are read as well as packed ones."""
        packed = await embedder.embed(TEXTS, purpose="passage")
        ai.script(Step(plain=True))
        plain = await embedder.embed(TEXTS, purpose="passage")

        assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(packed, plain, strict=True))

    async def test_a_request_stays_within_the_providers_limit(self, embedder: Embedder, ai: FakeAI) -> None:
        """300,000 tokens a request, counted as bytes, which are never fewer."""
        await embedder.embed([f"{n:03} " * 2_000 for n in range(45)], purpose="passage")

        assert len(ai.received) == 2
        assert all(sum(len(text.encode()) for text in received.texts) <= 300_000 for received in ai.received)


class TestCohere(AtCohere, RemoteContract):
    """What Cohere has of its own."""

    async def test_what_is_sent(self, embedder: Embedder, ai: FakeAI) -> None:
        """The purpose reaches the model, and no text may be cut."""
        passage = await embedder.embed(TEXTS, purpose="passage")
        question = await embedder.embed(TEXTS, purpose="question")

        assert embedder.fingerprint == "cohere/embed-english-v3.0/1024"
        assert passage != question
        assert [received.path for received in ai.received] == ["/v2/embed"] * 2
        assert [received.body["input_type"] for received in ai.received] == ["search_document", "search_query"]
        assert {received.body["truncate"] for received in ai.received} == {"NONE"}
        assert {received.body["model"] for received in ai.received} == {"embed-english-v3.0"}
        assert {tuple(received.body["embedding_types"]) for received in ai.received} == {("float",)}

    async def test_a_request_stays_within_the_providers_limit(self, embedder: Embedder, ai: FakeAI) -> None:
        """96 texts a request."""
        await embedder.embed([f"Step {n}." for n in range(200)], purpose="passage")

        assert sorted(len(received.texts) for received in ai.received) == [8, 96, 96]

    async def test_a_long_question_is_read_to_its_end(self, embedder: Embedder, ai: FakeAI) -> None:
        """Beyond one window a question is still one vector, and its last words count."""
        long = "Why does the arm shake when " + "the wheel turns and " * 150
        [first_vector] = await embedder.embed([f"{long} gravity pulls?"], purpose="question")
        [second_vector] = await embedder.embed([f"{long} friction slows?"], purpose="question")

        assert len(ai.received[0].texts) > 1
        assert first_vector != second_vector
        assert len(first_vector) == 1024


class TestLocal(EmbedderContract):
    """all-MiniLM-L6-v2 on this machine."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """As it ships."""
        return LocalEmbedder()


@pytest.mark.parametrize(
    ("embedder", "dimensions"),
    [
        (lambda url: OpenAIEmbedder(CANARY, base_url=f"{url}/v1", model="text-embedding-3-large"), 3072),
        (lambda url: CohereEmbedder(CANARY, base_url=url, model="embed-english-light-v3.0"), 384),
    ],
)
async def test_a_provider_is_asked_once_how_long_its_vectors_are(
    embedder: Callable[[str], OpenAIEmbedder | CohereEmbedder], dimensions: int
) -> None:
    """Whatever the model: one call, and then vectors of any other length are refused."""
    with fake_ai() as ai:
        async with aclosing(embedder(ai.url)) as asked:
            await asked.ask_dimensions()
            await asked.ask_dimensions()

            assert asked.dimensions == dimensions
            assert asked.fingerprint.endswith(f"/{dimensions}")
            assert len(ai.received) == 1
            assert {len(vector) for vector in await asked.embed(TEXTS, purpose="passage")} == {dimensions}


async def test_a_book_is_indexed_with_any_model_of_the_endpoint(tmp_path: Path) -> None:
    """OPENAI_EMBEDDING_MODEL with other dimensions works; a book that is indexed tells them, so that opening it again
    costs no call, also when the settings name another model by then."""
    write_book(tmp_path / "book")
    with fake_ai() as ai:
        large = {"OPENAI_EMBEDDING_MODEL": "text-embedding-3-large"}
        shared = {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": f"{ai.url}/v1"}

        def settings(**fields: str) -> Settings:
            return Settings.model_validate({"home": tmp_path / "home", "embedder": "openai", **shared, **fields})

        async with open_lectern(settings(**large)) as lectern:
            await lectern.ingest(tmp_path / "book", book="b")
            assert (await lectern.search("what is a node")).hits
        calls = len(ai.received)
        async with open_lectern(settings(**large)) as lectern:
            assert (await lectern.app.library.book("b")).fingerprint == "openai/text-embedding-3-large/3072"
        assert len(ai.received) == calls
        async with open_lectern(settings()) as lectern:
            assert (await lectern.search("what is a node", book="b")).hits
