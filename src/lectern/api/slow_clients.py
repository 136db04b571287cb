"""Time limits for sending a request. uvicorn waits for ever for a head or a body that comes byte by byte, and a few
hundred such clients would use up the server's file descriptors. Here a head and a body each have a time limit."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lectern.api.errors import MEDIA_TYPE, problem

TIMEOUT_MESSAGE = (
    "the request took over {seconds:g} s to arrive, so it was given up; send it again at once, or on a better line"
)


class BodyTimeout:
    """Refuses a request whose body does not arrive in time, with a problem response."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a time limit on its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        end: float | None = asyncio.get_running_loop().time() + self._seconds

        async def receive_in_time() -> Message:
            nonlocal end
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                detail = TIMEOUT_MESSAGE.format(seconds=self._seconds)
                raise HTTPException(408, detail, {"Connection": "close"}) from None
            if not message.get("more_body"):
                end = None  # the next message says that the client has disconnected; that has no time limit
            return message

        await self._app(scope, receive_in_time, send)


class TimeoutProtocol(H11Protocol):
    """A connection of uvicorn with a time limit on the head of a request. `BodyTimeout` limits the body and answers
    with a problem; a body that the application does not read is ended here after twice that time."""

    seconds: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._expected: object = None  # what the timer is for: a head or a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Start or stop the timer if the state of the request has changed."""
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        super().connection_lost(exc)
        self._expect(None)

    def _update_timer(self) -> None:
        state = self.conn.their_state
        self._expect(state if state in (h11.IDLE, h11.SEND_BODY) else None)

    def _expect(self, expected: object) -> None:
        """Restart the timer if something else is expected now; more bytes of the same do not restart it."""
        if expected is self._expected:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._expected = None, expected
        if expected is not None:
            wait = self.seconds if expected is h11.IDLE else 2 * self.seconds
            self._timer = self.loop.call_later(wait, self._time_out)

    def _time_out(self) -> None:
        if self.transport.is_closing():
            return
        # if part of a head has arrived, the client waits for an answer
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            body = bytes(problem(408, TIMEOUT_MESSAGE.format(seconds=self.seconds)).body)
            head = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")]
            response = h11.Response(status_code=408, headers=head, reason=b"Request Timeout")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def timeout_protocol(seconds: float) -> type[TimeoutProtocol]:
    """The protocol class for a server with this time limit."""
    return type("TimeoutProtocol", (TimeoutProtocol,), {"seconds": seconds})
