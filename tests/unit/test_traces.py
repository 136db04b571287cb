"""Spans around generators and blocks: what they belong to, how they end, and that nobody waits for a collector."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from lectern.app import traces
from lectern.app.traces import OtlpTracer, open_traces
from lectern.domain.tracing import UNTRACED
from lectern.ports.tracing import Tracer
from tests.collector import Collector, collecting


async def _steps(tracer: Tracer) -> AsyncGenerator[int, None]:
    for number in (1, 2):
        with tracer.span("inside"):
            await asyncio.sleep(0)
        yield number


async def test_a_generators_span_is_current_inside_and_not_outside() -> None:
    """What a generator does belongs to its span; what the receiver does between two events does not."""
    with collecting() as collector:
        async with open_traces(collector.address, None) as tracer:
            with tracer.span("around"):
                async for _ in tracer.over("over", _steps(tracer), {"lectern.book": "robots"}):
                    with tracer.span("outside"):
                        tracer.note({"lectern.hits": 3}, name="receiver")

    [around], [over] = collector.named("around"), collector.named("over")
    assert {span.parent for span in collector.named("inside")} == {over.id}
    assert {span.parent for span in collector.named("receiver")} == {over.parent} == {around.id}
    assert (around.parent, len(collector.spans)) == ("", 6)
    assert over.attributes == {"lectern.book": "robots"}


async def test_an_abandoned_generator_ends_its_span_and_closes_what_it_reads() -> None:
    """A reader who leaves in the middle has not failed; the span says that it was cancelled."""
    closed: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append("yes")

    with collecting() as collector:
        async with open_traces(collector.address, None) as tracer:
            events = tracer.over("over", endless())
            await anext(events)
            await events.aclose()
            assert tracer.headers() == {}
            assert tracer.trace_id() is None

    [over] = collector.named("over")
    assert closed == ["yes"]
    assert (over.failed, over.attributes) == (False, {"lectern.cancelled": True})


async def test_an_error_passes_through_and_is_noted_by_its_class() -> None:
    """The span has failed, without the message; the error is the one that was raised."""

    async def failing() -> AsyncIterator[int]:
        yield 1
        raise KeyError("secret words of a reader")

    with collecting() as collector:
        async with open_traces(collector.address, None) as tracer:
            with pytest.raises(KeyError, match="secret"):
                async for _ in tracer.over("over", failing()):
                    pass

    [over] = collector.named("over")
    assert (over.failed, over.attributes) == (True, {"error.type": "KeyError"})
    assert b"secret" not in b"".join(collector.bodies)


async def test_a_callers_trace_is_continued_and_passed_on() -> None:
    """A valid `traceparent` is the parent; a broken one begins a new trace."""
    with collecting() as collector:
        async with open_traces(None, f"{collector.address}/v1/traces") as tracer:
            with tracer.span("valid", caller={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}):
                passed_on = tracer.headers()["traceparent"]
            with tracer.span("broken", caller={"traceparent": "nonsense"}):
                assert len(tracer.trace_id() or "") == 32

    [valid], [broken] = collector.named("valid"), collector.named("broken")
    assert (valid.trace, valid.parent) == ("a" * 32, "b" * 16)
    assert passed_on == f"00-{'a' * 32}-{valid.id}-01"
    assert broken.parent == ""
    assert broken.trace != valid.trace


async def test_what_the_operator_says_of_the_process_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard variables name the service, add attributes, and send headers."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "library")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc")
    with collecting() as collector:
        async with open_traces(collector.address, None) as tracer:
            with tracer.span("any"):
                pass

    [span] = collector.spans
    assert (span.resource["service.name"], span.resource["deployment.environment"]) == ("library", "test")
    assert collector.headers[0]["x-token"] == "abc"


async def test_the_end_does_not_wait_for_a_collector_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block ends although the last spans are still being sent."""
    monkeypatch.setattr(traces, "CLOSING_SECONDS", 0.05)
    with collecting() as collector:
        collector.behaviour = "hangs"
        async with open_traces(collector.address, None) as tracer:
            with tracer.span("any"):
                pass
        assert _is_closing()

        collector.wait(lambda it: it.requests)
        assert isinstance(tracer, OtlpTracer)
    _end_closing(collector)


def _is_closing() -> bool:
    return any(thread.name == "lectern-traces" for thread in threading.enumerate())


def _end_closing(collector: Collector) -> None:
    """Wait for the thread, which the collector has let go."""
    assert collector.ended.is_set()
    for thread in threading.enumerate():
        if thread.name == "lectern-traces":
            thread.join()


async def test_without_a_collector_nothing_changes() -> None:
    """Events, blocks and errors pass as they are, and a generator is closed."""
    seen = [number async for number in UNTRACED.over("over", _steps(UNTRACED))]
    with UNTRACED.span("any", {"lectern.hits": 1}, caller={}):
        UNTRACED.note({"lectern.hits": 2}, name="other")

    assert seen == [1, 2]
    assert (UNTRACED.headers(), UNTRACED.trace_id()) == ({}, None)
