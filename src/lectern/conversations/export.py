"""A whole conversation as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from lectern.domain.threads import Feedback, Json, ThreadHead, Turn, doubtful_claims


def as_markdown(head: ThreadHead, turns: Sequence[Turn]) -> str:
    """Questions, answers with their doubtful claims and sources, in order."""
    lines = [f"# {_line(head.title)}", "", f"Book: {head.book_id} · {head.turn_count} turns · {head.created_at}", ""]
    for turn in turns:
        lines += [f"## {_line(turn.question)}", "", turn.answer, ""]
        for claim in doubtful_claims(turn.reply):
            lines += [_doubt_line(claim), ""]
        sources = turn.reply.get("sources", [])
        lines += [f"{source['number']}. [{_label(source['breadcrumb'])}](<{source['url']}>)" for source in sources]
        lines += [""] if sources else []
        lines += [_feedback_line(turn.feedback), ""] if turn.feedback else []
    return "\n".join(lines)


def _doubt_line(claim: Json) -> str:
    """A doubtful claim, the reason and what the book says in one line."""
    evidence = f" The book: “{_line(claim['evidence'])}”" if claim.get("evidence") else ""
    return f"⚑ “{_line(claim.get('text', ''))}” {_line(claim.get('reason', ''))}{evidence}"


def _feedback_line(feedback: Feedback) -> str:
    """The thumb, its reason and the comment in one line."""
    reason = f" ({feedback.reason.replace('_', ' ')})" if feedback.reason else ""
    comment = f": {_line(feedback.comment)}" if feedback.comment else ""
    return f"Feedback: thumb {feedback.rating}{reason}{comment}"


def _line(text: str) -> str:
    """A text that stays within one line of Markdown."""
    return " ".join(text.split())


def _label(text: str) -> str:
    return _line(text).replace("[", "\\[").replace("]", "\\]")
