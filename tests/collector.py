"""An OpenTelemetry collector on loopback, over real HTTP: it decodes what it gets, and fails as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_SECONDS = 60  # for spans, on a busy machine
HANG_SECONDS = 600  # that a hanging collector holds a request, unless the test ends first
Behaviour = str  # "well", "hangs", or a status as digits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """One span as the collector got it."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]
    seconds: float


@dataclass(slots=True, kw_only=True)
class Collector:
    """What arrived, and how the collector answers."""

    address: str = ""
    behaviour: Behaviour = "well"
    requests: int = 0
    bodies: list[bytes] = field(default_factory=list)
    spans: list[ReceivedSpan] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    ended: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]

    def wait(self, ready: Callable[[Collector], object]) -> None:
        """Wait until what arrived is as it should be."""
        with self.changed:
            assert self.changed.wait_for(lambda: ready(self), WAIT_SECONDS), [span.name for span in self.spans]

    def receive(self, body: bytes, headers: dict[str, str]) -> int:
        """Take a request; gives the status of the answer."""
        with self.changed:
            self.requests += 1
            self.headers.append(headers)
            self.changed.notify_all()
        if self.behaviour == "hangs":
            self.ended.wait(HANG_SECONDS)
            return 503
        if self.behaviour != "well":
            return int(self.behaviour)
        with self.changed:
            self.bodies.append(body)
            self.spans += spans_of(body)
            self.changed.notify_all()
        return 200


def spans_of(body: bytes) -> list[ReceivedSpan]:
    """The spans of a request."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        ReceivedSpan(
            name=span.name,
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            kind=span.kind,
            failed=span.status.code == 2,
            attributes=_values(span.attributes),
            resource=_values(of_process.resource.attributes),
            seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        )
        for of_process in request.resource_spans
        for of_scope in of_process.scope_spans
        for span in of_scope.spans
    ]


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens for as long as the block lasts."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            status = collector.receive(body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    collector.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        collector.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
