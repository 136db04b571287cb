"""One log line a question: how it ended, how sure, how long. Its text is there only where the operator asks for it."""

from __future__ import annotations

import structlog

from lectern.conversing.runs import Ended

log = structlog.get_logger("lectern.questions")


class QuestionLog:
    """Watches questions and writes their lines."""

    def __init__(self, *, with_text: bool) -> None:
        self._with_text = with_text

    def __call__(self, ended: Ended) -> None:
        """One question has its reply, or will have none."""
        line: dict[str, object] = {"outcome": ended.outcome}
        if ended.run_id is not None:
            line |= {"run_id": ended.run_id, "thread": ended.thread_id}
        if self._with_text:
            line["question"] = ended.text
        if ended.error is not None:
            line |= {"error": type(ended.error).__name__, "detail": str(ended.error)}
        if (reply := ended.reply) is not None:
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
