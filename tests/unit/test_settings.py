"""Settings: a wrong one is said at start-up, with the name of the variable."""

import pytest

from lectern.app.settings import changed_variables, load_settings
from lectern.domain.errors import ConfigError


def test_an_unknown_lectern_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing mistake in a name is an error that names it and lists what exists."""
    monkeypatch.setenv("LECTERN_HOEM", "x")

    with pytest.raises(ConfigError, match=r"LECTERN_HOEM.*LECTERN_HOME"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("LECTERN_EMBEDDER", "gpt"), ("LECTERN_MAX_FILE_MIB", "-1"), ("QDRANT_COLLECTION_NAME", "a b/c")],
)
def test_a_wrong_value_names_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The message names the variable as the operator wrote it, and the value."""
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=name):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("LECTERN_JUDGE", "maybe", ["auto", "local", "model"]),
        ("LECTERN_DOUBTFUL", "drop", ["flag", "hide"]),
        ("LECTERN_OPENAI_API", "rest", ["auto", "responses", "chat"]),
        ("LECTERN_READING_TOKENS", "many", ["integer"]),
        ("LECTERN_READING_TOKENS", "499", ["greater than or equal to 500"]),
    ],
)
def test_a_wrong_value_is_told_with_the_choices(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, choices: list[str]
) -> None:
    """The message has the variable, the value that was set, and what may be set instead."""
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert all(part in str(caught.value) for part in (name, repr(value), *choices))


def test_other_programs_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only names that begin with LECTERN_ are ours to judge."""
    monkeypatch.setenv("SOMETHING_ELSE", "1")

    load_settings()


@pytest.mark.parametrize(
    "thresholds", ["0.8/5, 0.7/3", "0.8, 0.7, 0.6", "0.6/5, 0.7/3, 0.8/2", "0.8/0, 0.7/1, 0.6/1", "x/1, 0.7/1, 0.6/1"]
)
def test_thresholds_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch, thresholds: str) -> None:
    """Three, falling, each with its chunks; the error names the variable."""
    monkeypatch.setenv("LECTERN_THRESHOLDS", thresholds)
    with pytest.raises(ConfigError, match="LECTERN_THRESHOLDS"):
        load_settings()


def test_thresholds_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As similarity/chunks, from high to low."""
    monkeypatch.setenv("LECTERN_THRESHOLDS", "0.6/4, 0.5/2, 0.35/1")
    assert load_settings().thresholds == ((0.6, 4), (0.5, 2), (0.35, 1))


@pytest.mark.parametrize("answerer", ["auto", "offline"])
def test_a_model_cannot_judge_where_there_is_none(monkeypatch: pytest.MonkeyPatch, answerer: str) -> None:
    """The error names the variable and what to set; with an endpoint there is none."""
    monkeypatch.setenv("LECTERN_JUDGE", "model")
    monkeypatch.setenv("LECTERN_ANSWERER", answerer)

    with pytest.raises(ConfigError, match=r"LECTERN_JUDGE.*OPENAI_BASE_URL"):
        load_settings()
    monkeypatch.setenv("LECTERN_ANSWERER", "auto")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert load_settings().judge == "model"


def test_no_write_can_reach_more_copies_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qdrant takes such a number without a word and asks for fewer; here the error names both variables."""
    monkeypatch.setenv("LECTERN_QDRANT_WRITE_CONSISTENCY", "3")
    monkeypatch.setenv("LECTERN_QDRANT_REPLICAS", "2")

    with pytest.raises(ConfigError, match=r"LECTERN_QDRANT_WRITE_CONSISTENCY is 3.*LECTERN_QDRANT_REPLICAS is 2"):
        load_settings()
    monkeypatch.setenv("LECTERN_QDRANT_REPLICAS", "3")
    assert load_settings().qdrant_write_consistency == 3


def test_the_variables_that_change_something_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the default's value, and unknown ones, are left out."""
    for name, value in {"OPENAI_MODEL": "x", "LECTERN_JUDGE": "auto", "AGENT_TOP_K": "5", "PATH": "/bin"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("lectern_doubtful", "hide")
    monkeypatch.delenv("LECTERN_HOME", raising=False)

    assert changed_variables() == {"OPENAI_MODEL": "x", "LECTERN_DOUBTFUL": "hide"}
