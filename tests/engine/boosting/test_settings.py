from __future__ import annotations

import math
from dataclasses import asdict
from inspect import signature

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.folder_setting import Folder
from spacy_treecrf.engine.rules.rule_setting import Rules
from spacy_treecrf.engine.setting import Boolean, Choice, Integer, Number

BAD_INTEGERS = ["3", 1.5, 2.0, True, math.nan, [1]]
BAD_NUMBERS = [None, "0.5", True, math.nan, math.inf, -math.inf, 1j, [0.5], 10**400]


def bad_values():
    for name, setting in Settings.settings().items():
        if isinstance(setting, Choice):
            bad = ["", "unknown", None, 1, ["newton"]]
        elif isinstance(setting, Integer):
            bad = [setting.low - 1, setting.high + 1, *BAD_INTEGERS]
            bad += [] if setting.words else [None]
        elif isinstance(setting, Number):
            bad = [setting.low - 1e-9, *([setting.low] if setting.above else []), *BAD_NUMBERS]
            bad += [setting.high * (1.0 + 1e-9)] if math.isfinite(setting.high) else []
        elif isinstance(setting, Rules):
            bad = ["A once", 1, [1], True]  # single rules are tests/engine/rules' matter
        elif isinstance(setting, Folder):
            bad = ["", 1, True, ["there"], b"there", "there\0"]
        else:
            assert isinstance(setting, Boolean)
            bad = [None, "yes", 2, [True]]
        yield from ((name, value) for value in bad)


@pytest.mark.parametrize(("name", "value"), list(bad_values()))
def test_a_bad_value_is_refused_with_the_name_of_its_setting(name, value):
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is .*; use "):
        Settings(**{name: value})


@pytest.mark.parametrize("name", ["family", "rounds", "penalty", "line_search"])
def test_an_array_is_refused_with_the_name_of_its_setting(name):
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is "):
        Settings(**{name: np.array([1, 1])})


def test_every_setting_is_checked():
    assert set(Settings.names()) == set(signature(Settings).parameters)
    assert {name for name, _ in bad_values()} == set(Settings.names())


def limits():
    for name, setting in Settings.settings().items():
        if isinstance(setting, Choice):
            values = setting.choices
        elif isinstance(setting, Integer):
            values = [setting.low, setting.high, *(word.value for word in setting.words)]
        elif isinstance(setting, Number):
            lowest = math.nextafter(setting.low, 1.0) if setting.above else setting.low
            values = [lowest, min(setting.high, 1e300)]
        elif isinstance(setting, Rules):
            values = [None, ("A once",)]
        elif isinstance(setting, Folder):
            values = [None, "there"]
        else:
            values = [True, False]
        yield from ((name, value) for value in values)


@pytest.mark.parametrize(("name", "value"), list(limits()))
def test_limits_themselves_are_allowed(name, value):
    family = {"family": "joint"} if name == "order" else {}
    assert getattr(Settings(**family, **{name: value}), name) == value


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
