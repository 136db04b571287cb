"""A whole conversation as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from lectern.domain.threads import ThreadHead, Turn


def as_markdown(head: ThreadHead, turns: Sequence[Turn]) -> str:
    """Questions, answers and their sources, in order."""
    lines = [f"# {_line(head.title)}", "", f"Book: {head.book_id} · {head.turn_count} turns · {head.created_at}", ""]
    for turn in turns:
        lines += [f"## {_line(turn.question)}", "", turn.answer, ""]
        sources = turn.reply.get("sources", [])
        lines += [f"{source['number']}. [{_label(source['breadcrumb'])}](<{source['url']}>)" for source in sources]
        lines += [""] if sources else []
    return "\n".join(lines)


def _line(text: str) -> str:
    """A text that stays within one line of Markdown."""
    return " ".join(text.split())


def _label(text: str) -> str:
    return _line(text).replace("[", "\\[").replace("]", "\\]")
