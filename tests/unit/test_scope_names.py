"""A filter has one name in requests, wherever a request is written down."""

from __future__ import annotations

from lectern.cli.options import SCOPE_OPTIONS
from lectern.domain.scope import Scope
from lectern.schemas.common import Filters
from lectern.schemas.scope import OPTIONS, SCOPE_FIELDS, fields_of, scope_from

SCOPE = Scope(tier=2, module="ros2", chapters=(1, 4), lesson=3, levels=("A2", "B1"), layer="L2", parent_doc_id="id")


def test_requests_and_options_have_every_filter_of_the_table() -> None:
    """A filter that is renamed in one place alone would be dropped without a word."""
    assert set(Filters.model_fields) == {"book_id", *(field.wire for field in SCOPE_FIELDS)}
    assert set(SCOPE_OPTIONS) == {"book", *(option.replace("-", "_") for option in OPTIONS)}


def test_a_scope_survives_the_way_to_a_request_and_back() -> None:
    """No field of a scope is lost on the wire."""
    assert set(fields_of(SCOPE)) == {field.wire for field in SCOPE_FIELDS}
    assert scope_from(fields_of(SCOPE)) == SCOPE
    assert Filters(**fields_of(SCOPE)).scope() == SCOPE
