"""Chunk identity, as the design fixes it."""

import uuid

from lectern.domain.books import LessonPlace
from lectern.domain.chunks import chunk_id, content_hash, estimate_tokens, parent_doc_id

SPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
PLACE = LessonPlace(book_id="physical-ai-robotics", module="ros2", chapter=3, lesson=2)


def test_a_chunk_id_is_the_designs_uuid5() -> None:
    """The id is the uuid5 of book, module, chapter, lesson and the first 16 digits of the text's hash."""
    digest = content_hash("Nodes talk over topics.")

    assert chunk_id(PLACE, digest) == str(uuid.uuid5(SPACE, f"physical-ai-robotics:ros2:3:2:{digest[:16]}"))


def test_a_parent_id_is_the_designs_uuid5() -> None:
    """A lesson's id is the same uuid5 with `parent` in place of the hash."""
    assert parent_doc_id(PLACE) == str(uuid.uuid5(SPACE, "physical-ai-robotics:ros2:3:2:parent"))


def test_a_repeated_text_gets_its_count() -> None:
    """The second occurrence of a text in a lesson has another id than the first, and the third another again."""
    digest = content_hash("See above.")

    assert chunk_id(PLACE, digest, 2) == str(uuid.uuid5(SPACE, f"physical-ai-robotics:ros2:3:2:{digest[:16]}:2"))
    assert len({chunk_id(PLACE, digest, n) for n in (1, 2, 3)}) == 3


def test_a_doubled_place_appends_the_path_to_both_ids() -> None:
    """Where a second file has the same place, its ids carry its path, so no two lessons share one."""
    doubled = LessonPlace(book_id="b", module="m", chapter=1, lesson=1, doubled_by="m/01-b.md")
    digest = content_hash("text of a lesson")

    assert chunk_id(doubled, digest) == str(uuid.uuid5(SPACE, f"b:m:1:1:{digest[:16]}:m/01-b.md"))
    assert parent_doc_id(doubled) == str(uuid.uuid5(SPACE, "b:m:1:1:parent:m/01-b.md"))


def test_the_token_estimate_is_words_times_1_3() -> None:
    """The design's estimate, rounded."""
    assert [estimate_tokens(words) for words in (1, 10, 307, 308)] == [1, 13, 399, 400]
