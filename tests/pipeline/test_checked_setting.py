"""Settings of a pipe that are changed after it was made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import spacy

from tests.pipeline.tiny_pipes import pipe_of

GOOD: list[tuple[str, Any]] = [
    *((name, value) for name in ("min_prob", "expected_f1") for value in (0, 0.5, 1.0)),
    *((name, value) for name in ("agreement", "parallels") for value in (None, 0, 0.5, 1.0)),
]
NAMES = ["min_prob", "expected_f1", "agreement", "parallels"]
BAD = [-1, 1.5, float("nan"), "x", True]


def pipe(task: str) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf", config={"task": task})
    return pipe_of(nlp)


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_good_values_are_kept(name: str, value: Any) -> None:
    own = pipe("ents")
    setattr(own, name, value)
    assert getattr(own, name) == value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(1)])
def test_numbers_of_numpy_are_kept_as_float(name: str, value: Any) -> None:
    own = pipe("ents")
    setattr(own, name, value)
    assert getattr(own, name) == value
    assert type(getattr(own, name)) is float


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", BAD)
def test_others_are_refused_and_change_nothing(name: str, value: Any) -> None:
    own = pipe("ents")
    before = getattr(own, name)
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is .*; use 0 to 1"):
        setattr(own, name, value)
    assert getattr(own, name) == before


@pytest.mark.parametrize("name", ["expected_f1", "agreement", "parallels"])
def test_tasks_without_spans_have_none_of_what_is_about_spans(name: str) -> None:
    own = pipe("tag")
    with pytest.raises(ValueError, match="the task has no spans"):
        setattr(own, name, 0.5)
    setattr(own, name, 0.0)
    own.min_prob = 0.5
