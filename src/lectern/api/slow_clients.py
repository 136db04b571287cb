"""How long a client may take to send a request. uvicorn waits for ever for a head or a body that comes byte by byte; a
few hundred such clients would use up the server's descriptors. Here each has its seconds, however busy it looks."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lectern.api.errors import MEDIA_TYPE, problem

LATE = "the request took over {seconds:g} s to arrive, so it was given up; send it again at once, or on a better line"


class PromptBody:
    """Refuses a body that does not come to its end in time, in the one shape of an error."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a clock on its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        end: float | None = asyncio.get_running_loop().time() + self._seconds

        async def prompt() -> Message:
            nonlocal end
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, LATE.format(seconds=self._seconds), {"Connection": "close"}) from None
            if not message.get("more_body"):
                end = None  # what comes now is only that the client goes away, and nobody is in a hurry for that
            return message

        await self._app(scope, prompt, send)


class PatientProtocol(H11Protocol):
    """One connection, as uvicorn has it, with a clock on every head. A body has its clock in the application, where an
    error has its shape; twice that time ends one which the application does not read."""

    seconds: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # uvicorn's own
        super().__init__(*args, **kwargs)
        self._clock: asyncio.TimerHandle | None = None
        self._expected: object = None  # what the clock is for: a head or a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """A head is expected."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """More of something, or the end of it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        super().connection_lost(exc)
        self._expect(None)

    def _watch(self) -> None:
        state = self.conn.their_state
        self._expect(state if state in (h11.IDLE, h11.SEND_BODY) else None)

    def _expect(self, expected: object) -> None:
        """Set the clock when something else is expected; however many bytes come, it is not set back."""
        if expected is self._expected:
            return
        if self._clock is not None:
            self._clock.cancel()
        self._clock, self._expected = None, expected
        if expected is not None:
            wait = self.seconds if expected is h11.IDLE else 2 * self.seconds
            self._clock = self.loop.call_later(wait, self._give_up)

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:  # a head has begun, so somebody listens
            body = bytes(problem(408, LATE.format(seconds=self.seconds)).body)
            head = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")]
            response = h11.Response(status_code=408, headers=head, reason=b"Request Timeout")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def patient_protocol(seconds: float) -> type[PatientProtocol]:
    """The protocol of a server whose clients have so many seconds."""
    return type("PatientProtocol", (PatientProtocol,), {"seconds": seconds})
