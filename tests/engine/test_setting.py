"""Fields of settings: what they accept, how they are read, stored, parsed and described."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.engine.setting import (
    SettingsBase,
    Word,
    boolean,
    choice,
    integer,
    like,
    number,
)
from spacy_treecrf.storage.state_reader import StateReader
from tests.test_package import loaded_after


@dataclass(frozen=True)
class Plain(SettingsBase):
    size: int = integer(3, "How large.", low=1, high=9)
    share: float = number(0.5, "Which part.", low=0.0, high=1.0, above=True)
    weight: float = number(1.0, "How heavy.", low=0.0)
    wide: bool = boolean(False, "Whether it is wide.")
    colour: str = choice("red", "Which colour.", ("red", "green"))
    limit: int | str | None = integer(
        None,
        "How many.",
        low=2,
        high=5,
        words=[Word("all", stored=-1), Word(None, "as many as fit", decided=True)],
    )
    beam: int | None = integer(None, "How broad.", low=1, high=7, words=[Word(None, "any")])


@dataclass(frozen=True)
class Later(Plain):
    size: int = like(Plain, "size", default=5, high=20)
    shade: float = number(0.7, "How dark.", low=0.0, high=1.0, older=0.0)


def stored(**changes: Any) -> dict[str, Any]:
    return {**Plain(limit=4).to_state(), **changes}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("size", 0, "0; use an integer from 1 to 9"),
        ("size", np.int8(10), "an integer from 1 to 9"),
        ("size", True, "True; use an integer from 1 to 9"),
        ("size", np.True_, "an integer from 1 to 9"),
        ("share", 0.0, "0.0; use a number above 0 to 1"),
        ("share", np.float32("nan"), "a number above 0 to 1"),
        ("weight", -1, "-1; use a number from 0 on"),
        ("weight", math.inf, "inf; use a number from 0 on"),
        ("weight", 10**400, "use a number from 0 on"),
        ("wide", 1, "1; use True or False"),
        ("wide", np.array(True), "use True or False"),
        ("colour", "blue", "'blue'; use one of 'red', 'green'"),
        (
            "limit",
            "some",
            "'some'; use an integer from 2 to 5, or 'all', or None for as many as fit",
        ),
        ("limit", 1, "1; use an integer from 2 to 5"),
    ],
)
def test_a_wrong_value_is_refused_with_its_setting_and_what_to_use(
    name: str, value: Any, expected: str
) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is .*{expected}"):
        Plain(**{name: value})


def test_values_become_plain_objects() -> None:
    settings = Plain(
        size=np.int64(4),
        share=np.float32(0.25),
        weight=Fraction(1, 2),
        wide=np.True_,
        colour=np.str_("green"),
    )
    assert settings == Plain(4, 0.25, 0.5, True, "green")
    types = [type(value) for value in settings.to_dict().values()]
    assert types == [int, float, float, bool, str, type(None), type(None)]


def test_like_takes_over_what_is_not_changed() -> None:
    assert Later().size == 5
    assert Later.settings()["size"].help == "How large."
    with pytest.raises(ValueError, match="an integer from 1 to 20"):
        Later(size=21)
    assert Plain().size == 3


def test_settings_are_stored_and_read_again() -> None:
    for settings in (Plain(limit=4), Plain(limit="all", beam=2, wide=True, share=1)):
        assert Plain.from_state(StateReader(settings.to_state())) == settings
    state = Plain(limit="all").to_state()
    assert list(state) == Plain.names()
    assert state["limit"] == -1
    assert state["beam"] is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"size": 0}, "size"),
        ({"size": 2.0}, "size"),
        ({"share": -0.5}, "share"),
        ({"weight": math.nan}, "weight"),
        ({"wide": 1}, "wide"),
        ({"colour": "blue"}, "colour"),
        ({"limit": -2}, "limit"),
        ({"limit": None}, "limit"),  # a model has decided on it
        ({"beam": 0}, "beam"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_field_of_a_file_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: model .*'{field}'"):
        Plain.from_state(StateReader(stored(**changes)))


def test_a_file_may_be_older_than_a_setting_that_says_what_it_meant_then() -> None:
    assert Later.from_state(StateReader(stored())).shade == 0.0
    assert Later.from_state(StateReader(stored(shade=0.5))).shade == 0.5
    state = stored()
    del state["size"]
    with pytest.raises(ValueError, match="'size': expected a value, found no such field"):
        Later.from_state(StateReader(state))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "4", 4),
        ("share", "1e-3", 0.001),
        ("share", "1", 1.0),
        ("wide", "true", True),
        ("wide", "False", False),
        ("colour", "green", "green"),
        ("limit", "all", "all"),
        ("limit", "none", None),
        ("limit", "3", 3),
    ],
)
def test_texts_are_parsed_by_the_type_of_the_setting(name: str, text: str, value: Any) -> None:
    parsed = Plain.parsed(name, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("size", "4.0"), ("size", ""), ("share", "half"), ("share", "nan"), ("wide", "1")],
)
def test_a_text_that_is_no_value_is_refused_with_range_and_help(name: str, text: str) -> None:
    setting = Plain.settings()[name]
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is .*; use ") as caught:
        Plain.parsed(name, text)
    assert setting.allowed in str(caught.value)
    assert str(caught.value).endswith(setting.help)


def test_settings_are_read_without_numpy() -> None:
    loaded = loaded_after("from spacy_treecrf.engine.boosting.settings import Settings; Settings()")
    assert "spacy_treecrf" in loaded
    assert not loaded & {"numpy", "numba", "pydantic"}
