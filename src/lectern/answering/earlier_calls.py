"""The tool calls of earlier turns, as they go to the model again. Their results have no numbers: a marker in an answer
always means a passage that was retrieved in its own turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lectern.domain.chunks import TOKENS_PER_WORD
from lectern.domain.replies import Exchange, ToolUse


def within_budget(history: Sequence[Exchange], tokens: int) -> tuple[Exchange, ...]:
    """The history with as many results of earlier tool calls as fit, those of the last turns first."""
    kept: list[Exchange] = []
    for exchange in reversed(history):
        uses: list[ToolUse] = []
        for use in exchange.tool_uses:
            shortened, size = _shortened(use, tokens)
            tokens -= size
            uses += [shortened] if size else []
        kept.append(replace(exchange, tool_uses=tuple(uses)))
    return tuple(reversed(kept))


def _shortened(use: ToolUse, tokens: int) -> tuple[ToolUse, int]:
    """A call with the first of its results that fit, and their size in tokens."""
    body = _read(use.output)
    results: list[dict[str, Any]] = []
    size = 0
    for result in body.get("results", ()):
        cost = round(len(str(result.get("chunk_text", "")).split()) * TOKENS_PER_WORD)
        if size + cost > tokens:
            break
        size += cost
        results.append({name: value for name, value in result.items() if name != "rank"})
    body |= {"results": results, "total_results": len(results)}
    return replace(use, output=json.dumps(body, ensure_ascii=False)), size


def _read(output: str) -> dict[str, Any]:
    """The output of a tool as an object; an outline, an error or a damaged one has no results."""
    try:
        body = json.loads(output)
    except ValueError:
        return {}
    is_retrieval = isinstance(body, dict) and isinstance(body.get("results"), list)
    return {**body, "results": [row for row in body["results"] if isinstance(row, dict)]} if is_retrieval else {}
