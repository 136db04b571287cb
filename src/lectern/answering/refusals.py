"""The reply around the sentence that a refused reader gets."""

from __future__ import annotations

from collections.abc import Sequence

from lectern.domain.evidence import Hit
from lectern.domain.replies import Account, NearestLesson, Refusal, RefusalReason, Removals


def refuse(
    reason: RefusalReason,
    account: Account,
    hits: Sequence[Hit],
    *,
    sentence: str,
    nearest: tuple[NearestLesson, ...],
    removals: Removals | None = None,
) -> Refusal:
    """A refusal for this reason; where else the answer may be is added by whoever has looked."""
    return Refusal(
        text=sentence,
        reason=reason,
        nearest=nearest,
        outside_scope=(),
        other_books=(),
        considered=tuple(hits),
        removed=removals or Removals(),
        account=account,
    )
