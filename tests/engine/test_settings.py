from __future__ import annotations

import math
from dataclasses import asdict
from inspect import signature

import numpy as np
import pytest

from spacy_treecrf.engine.settings import BOOLEANS, CHOICES, INTEGERS, NUMBERS, Settings

BAD_INTEGERS = [None, "3", 1.5, 2.0, True, math.nan, [1]]
BAD_NUMBERS = [None, "0.5", True, math.nan, math.inf, -math.inf, 1j, [0.5]]


def bad_values():
    for name in CHOICES:
        for value in ("", "unknown", None, 1, ["newton"]):
            yield name, value
    for name, (low, high) in INTEGERS.items():
        for value in (low - 1, high + 1, *BAD_INTEGERS):
            yield name, value
    for name, (low, high, lowest_is_bad) in NUMBERS.items():
        for value in (low - 1e-9, *([low] if lowest_is_bad else []), *BAD_NUMBERS):
            yield name, value
        if math.isfinite(high):
            yield name, high * (1.0 + 1e-9)
    for name in BOOLEANS:
        for value in (None, "yes", 2, [True]):
            yield name, value


@pytest.mark.parametrize(("name", "value"), list(bad_values()))
def test_a_bad_value_is_refused_with_the_name_of_its_setting(name, value):
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is .*; use "):
        Settings(**{name: value})


@pytest.mark.parametrize("name", ["family", "rounds", "penalty", "line_search"])
def test_an_array_is_refused_with_the_name_of_its_setting(name):
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is "):
        Settings(**{name: np.array([1, 1])})


def test_every_setting_is_checked():
    checked = {*CHOICES, *INTEGERS, *NUMBERS, *BOOLEANS, "rounds", "beam"}
    assert checked == set(Settings.names()) == set(signature(Settings).parameters)


def test_limits_themselves_are_allowed():
    for name, choices in CHOICES.items():
        for value in choices:
            assert getattr(Settings(**{name: value}), name) == value
    for name, (low, high) in INTEGERS.items():
        for value in (low, high):
            assert getattr(Settings(**{"family": "joint", name: value}), name) == value
    for name, (low, high, lowest_is_bad) in NUMBERS.items():
        for value in (math.nextafter(low, 1.0) if lowest_is_bad else low, min(high, 1e300)):
            assert getattr(Settings(**{name: value}), name) == value


def test_numpy_numbers_become_plain_ones():
    settings = Settings(rounds=np.int64(7), penalty=np.float32(0.5), ridge=2, line_search=np.True_)
    assert (settings.rounds, settings.penalty, settings.ridge) == (7, 0.5, 2.0)
    assert settings.line_search is True
    assert {type(v) for v in asdict(settings).values()} == {str, int, float, bool, type(None)}


def test_only_the_joint_family_goes_beyond_order_one():
    with pytest.raises(ValueError, match="setting 'order' is 2; use 0 or 1 with family='separate'"):
        Settings(family="separate", order=2)
    assert Settings(family="joint", order=4).order == 4


@pytest.mark.parametrize("beam", [0, -1, 1.5, "3", True, 2**20])
def test_a_beam_of_nothing_is_refused(beam):
    with pytest.raises(ValueError, match=r"^treecrf: setting 'beam' is .*; use an integer from 1"):
        Settings(beam=beam)


def test_a_beam_needs_a_chain_of_labels_and_the_local_bound():
    assert Settings(beam=3).resolved(4).family == "separate"
    for other in ({"order": 0}, {"family": "joint"}, {"order": 2}):
        with pytest.raises(ValueError, match=r"^treecrf: setting 'beam' is 3; use None unless"):
            Settings(beam=3, **other)
    with pytest.raises(ValueError, match=r"^treecrf: setting 'gamma' is 'mixing'; use 'local'"):
        Settings(beam=3, gamma="mixing")


def test_unknown_names_are_refused():
    with pytest.raises(TypeError, match="leafs"):
        Settings(leafs=3)


def test_separate_family_has_order_one_at_most():
    with pytest.raises(ValueError, match=r"^treecrf: setting 'order' is 2; use 0 or 1 with family"):
        Settings(family="separate", order=2)


@pytest.mark.parametrize(
    ("n_labels", "rounds"), [(1, 150), (5, 150), (9, 100), (22, 40), (300, 40)]
)
def test_rounds_fall_with_the_number_of_labels_unless_given(n_labels, rounds):
    assert Settings().resolved(n_labels).rounds == rounds
    assert Settings(rounds=7).resolved(n_labels).rounds == 7
