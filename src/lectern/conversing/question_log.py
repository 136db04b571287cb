"""One log line a question: how it ended, how sure, how long. Its text is there only where the operator asks for it."""

from __future__ import annotations

import structlog

from lectern.conversing.runs import Failed, LiveRun, outcome_of

log = structlog.get_logger("lectern.questions")


class QuestionLog:
    """Watches runs and writes their lines."""

    def __init__(self, *, with_text: bool) -> None:
        self._with_text = with_text

    def __call__(self, run: LiveRun) -> None:
        """One run ended."""
        outcome, reply = outcome_of(run)
        line: dict[str, object] = {"outcome": outcome, "run_id": run.request.run_id, "thread": run.request.thread_id}
        if self._with_text:
            line["question"] = run.request.text
        last = run.events[-1]
        if isinstance(last, Failed):
            line |= {"error": type(last.error).__name__, "detail": str(last.error)}
        if reply is not None:
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
