"""Traces over OTLP, for a collector that the operator names. The spans of a turn are `turn`, `answer`, and below it
`rewrite`, `retrieve`, `weigh`, `draft`, `judge`; then `store`. An ingestion is one span, and so is each request.

Spans are sent by a thread of their own, in batches. If the collector is slow, full or gone, spans are lost and nothing
else happens: one line in the log says so, and one says when it goes on.

The provider is not made the global one: another program's spans in this process stay what they are, and no library
begins to trace because of us. The Agents SDK has traces of its own, with texts in them; they stay off.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TypeVar

import structlog
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lectern import __version__
from lectern.domain.errors import ConfigError
from lectern.domain.tracing import Attributes
from lectern.ports.tracing import Tracer

T = TypeVar("T")
TRACES_PATH = "/v1/traces"  # of a collector whose base address is known
HTTP_PROTOCOL = "http/protobuf"
PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
CLOSING_SECONDS = 3.0  # for the last spans of a process that ends
ENDED = object()
log = structlog.get_logger("lectern.traces")


class OtlpTracer:
    """Records spans with the OpenTelemetry SDK."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("lectern", __version__)
        self._propagator = TraceContextTextMapPropagator()  # no baggage: it may hold anything

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None = None, *, caller: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """A span of the time that a block takes."""
        parent = None if caller is None else self._propagator.extract(caller)
        kind = SpanKind.INTERNAL if caller is None else SpanKind.SERVER
        span = self._tracer.start_span(name, parent, kind, attributes)
        token = context.attach(trace.set_span_in_context(span, parent))
        try:
            yield
        except BaseException as exc:
            _note_failure(span, exc)
            raise
        finally:
            context.detach(token)
            span.end()

    async def over(
        self, name: str, events: AsyncIterator[T], attributes: Attributes | None = None
    ) -> AsyncGenerator[T, None]:
        """The same events, with a span of the time from the first to the last."""
        span = self._tracer.start_span(name, attributes=attributes)
        try:
            async with aclosing(events):  # type: ignore[type-var]  # an async generator
                # not current at a `yield`: the receiver's own spans, and a generator that is abandoned there, would
                # find a context that is not theirs
                while (event := await self._next(span, events)) is not ENDED:
                    yield event  # type: ignore[misc]  # it is not ENDED
        except BaseException as exc:
            _note_failure(span, exc)
            raise
        finally:
            span.end()

    async def _next(self, span: Span, events: AsyncIterator[T]) -> T | object:
        token = context.attach(trace.set_span_in_context(span))
        try:
            return await anext(events, ENDED)
        finally:
            context.detach(token)

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Add attributes to the current span, and give it a better name."""
        span = trace.get_current_span()
        span.set_attributes(attributes)
        if name is not None:
            span.update_name(name)
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))

    def headers(self) -> dict[str, str]:
        """The headers that tell another service which span its request belongs to."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers)
        return headers

    def trace_id(self) -> str | None:
        """The id of the current trace."""
        spans = trace.get_current_span().get_span_context()
        return trace.format_trace_id(spans.trace_id) if spans.is_valid else None


def _note_failure(span: Span, exc: BaseException) -> None:
    """Mark a span as failed. The error's message may quote a reader, so only its class is noted."""
    if isinstance(exc, asyncio.CancelledError | GeneratorExit):
        span.set_attribute("lectern.cancelled", value=True)
        return
    span.set_attribute("error.type", type(exc).__name__)
    span.set_status(Status(StatusCode.ERROR))


class _Reporting(SpanExporter):
    """Sends spans, and says in one line when that begins to fail and in one when it works again."""

    def __init__(self, exporter: OTLPSpanExporter, endpoint: str) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._failing = False
        # a line for every attempt, at a level that an operator is woken for
        logging.getLogger(type(exporter).__module__).setLevel(logging.CRITICAL)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; called in the thread of the processor."""
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            log.warning("traces.lost", endpoint=self._endpoint, advice="readers notice nothing; check the collector")
        elif self._failing and not failed:
            log.info("traces.sent_again", endpoint=self._endpoint)
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """End an attempt that waits."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK's

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return True


@asynccontextmanager
async def open_traces(base: str | None, endpoint: str | None) -> AsyncIterator[Tracer]:
    """A tracer that sends to the collector at a base address, or to the whole address `endpoint`. The last spans are
    sent at the end of the block, if the collector takes them within a few seconds."""
    _check_protocol()
    address = endpoint or f"{(base or '').rstrip('/')}{TRACES_PATH}"
    # headers, certificates, compression, timeout and sampling: the SDK reads the standard variables
    exporter = _Reporting(OTLPSpanExporter(endpoint=address), address)
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    try:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    except ValueError as exc:
        raise ConfigError(f"traces cannot be sent in such batches ({exc}); check the OTEL_BSP_ variables") from exc
    try:
        yield OtlpTracer(provider)
    finally:
        await _close(provider)


def _check_protocol() -> None:
    name = next((name for name in PROTOCOL_VARIABLES if os.environ.get(name)), None)
    if name is not None and os.environ[name].strip() != HTTP_PROTOCOL:
        raise ConfigError(
            f"{name} is {os.environ[name]!r}, but Lectern sends traces as {HTTP_PROTOCOL}: set it to that, and "
            "OTEL_EXPORTER_OTLP_ENDPOINT to the collector's HTTP port, which is often 4318"
        )


def _resource() -> Resource:
    """What every span says of this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word."""
    own = Resource.create(
        {
            "service.name": "lectern",
            "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
        }
    )
    return own.merge(OTELResourceDetector().detect())


async def _close(provider: TracerProvider) -> None:
    """Send the last spans, for a few seconds. The thread is a daemon: a collector that hangs holds up no process."""
    closed, loop = asyncio.Event(), asyncio.get_running_loop()

    def close() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=close, name="lectern-traces", daemon=True).start()
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await closed.wait()
    except TimeoutError:
        log.warning("traces.lost", advice="the collector did not take the last spans in time")
