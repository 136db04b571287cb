"""Log lines: one JSON object a line, or one readable line on a terminal. Text of readers and books is escaped and kept
on one line. Known secrets are removed.

Each question has one line: how it ended, the confidence, the times. It contains the question's text only if the
operator asks for it. Each failed call of a dependency has one line.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from typing import Literal

import structlog
from structlog.typing import EventDict, WrappedLogger

from lectern.conversations.runs import QuestionOutcome
from lectern.domain.dependencies import Call

LogFormat = Literal["auto", "json", "console"]
HIDDEN = "[hidden]"
MAX_DETAIL = 300  # characters of an error
_KEYS = re.compile(r"\b(?:sk-[\w-]{8,}|l[kp]_[A-Za-z0-9]+_[\w-]{8,})")  # OpenAI's and our own
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
log = structlog.get_logger("lectern.questions")
dependency_log = structlog.get_logger("lectern.dependencies")


class Redaction:
    """Removes known secrets, and texts that look like a key of OpenAI's or of Lectern, from a line."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """The line without secrets."""
        return {name: self._clean(value) for name, value in event.items()}

    def _clean(self, value: object) -> object:
        if isinstance(value, dict):
            return {str(name): self._clean(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        if not isinstance(value, str):
            return value
        for secret in self._secrets:
            value = value.replace(secret, HIDDEN)
        return _KEYS.sub(HIDDEN, value)


def configure(form: LogFormat, *, secrets: Iterable[str] = (), level: int = logging.INFO) -> None:
    """Send log lines, also those of libraries, to stderr in one form."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redaction(secrets),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(form)],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("lectern").setLevel(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _renderers(form: LogFormat) -> list[structlog.typing.Processor]:
    if form == "json" or (form == "auto" and not sys.stderr.isatty()):
        return [structlog.processors.JSONRenderer()]
    return [_on_one_line, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]


def _on_one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escape control characters, so that a reader's text cannot control a terminal; a traceback keeps its lines."""
    return {
        name: _CONTROL.sub(_escape, value) if isinstance(value, str) and name != "exception" else value
        for name, value in event.items()
    }


def _escape(character: re.Match[str]) -> str:
    return f"\\x{ord(character[0]):02x}"


class QuestionLog:
    """Writes one line for each question."""

    def __init__(self, *, with_text: bool) -> None:
        self._with_text = with_text

    def __call__(self, event: QuestionOutcome) -> None:
        """Write the line of a question that has ended."""
        line: dict[str, object] = {"outcome": event.outcome}
        if event.run_id is not None:
            line |= {"run_id": event.run_id, "thread": event.thread_id}
        if self._with_text:
            line["question"] = event.text
        if event.error is not None:
            line |= {"error": type(event.error).__name__, "detail": str(event.error)}
        if (reply := event.reply) is not None:
            line |= {
                "book": reply["book_id"],
                "reason": reply["reason"],
                "confidence": round(float(reply["confidence"]), 3),
                "confidence_level": reply["confidence_level"],
                "hits": reply["retrieval_count"],
                "cited": len(reply["sources"]),
                "invented_citations": reply["invented_citations"],
                "model": reply["model"],
                "tokens": reply["tokens_used"],
                "retrieval_ms": round(float(reply["retrieval_time_ms"]), 1),
                "generation_ms": round(float(reply["generation_time_ms"]), 1),
                "total_ms": round(float(reply["total_time_ms"]), 1),
            }
        log.info("question.replied" if reply is not None else "question.failed", **line)


def log_failed_call(call: Call) -> None:
    """Write the line of a call of a dependency, if it failed."""
    if call.error is None:
        return
    dependency_log.warning(
        "dependency.failed",
        dependency=call.dependency,
        error=type(call.error).__name__,
        detail=str(call.error)[:MAX_DETAIL],
        seconds=round(call.seconds, 3),
    )
