"""Which settings are tried."""

from __future__ import annotations

import pytest

from spacy_treecrf.tuning.space import Choice, Range, draws, grid, key_of, parse_space


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=1,2,3", Choice([1, 2, 3])),
        ("a.b=0.5", Choice([0.5])),
        ("a.b=bio,none", Choice(["bio", "none"])),
        ('a.b="bio","x,y"', Choice(["bio", "x,y"])),
        ("a.b=true,null", Choice([True, None])),
        ("a.b=[1,2],[3]", Choice([[1, 2], [3]])),
        ("a.b=null,1,x", Choice([None, 1, "x"])),
        ("a.b=1..9", Range(1.0, 9.0, log=False, integer=True)),
        ("a.b=0.1..1:log", Range(0.1, 1.0, log=True, integer=False)),
    ],
)
def test_values_are_parsed(text: str, expected: Choice | Range) -> None:
    assert parse_space([text]) == {"a.b": expected}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaves", "expected name=values"),
        ("=1", "expected name=values"),
        ("a=", "expected name=values"),
        ("a=1..x", "expected a range"),
        ("a=1..2:exp", "expected a range"),
        ("a=3..2", "expected low <= high"),
        ("a=0..2:log", "above 0 on a log scale"),
    ],
)
def test_malformed_values_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_space([text])


def test_the_same_setting_twice_and_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="'a' twice"):
        parse_space(["a=1", "a=2"])
    with pytest.raises(ValueError, match="no setting to tune"):
        parse_space([])


def test_grid_is_all_combinations_and_cannot_list_ranges() -> None:
    assert grid(parse_space(["a=1,2", "b=x,y"])) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    with pytest.raises(ValueError, match="--random"):
        grid(parse_space(["a=1..2"]))


def test_draws_are_different_within_bounds_and_extend_each_other() -> None:
    space = parse_space(["a=1..5", "b=0.01..1.0:log", "c=x,y"])
    found = draws(space, 20, seed=1)
    assert len({key_of(settings) for settings in found}) == 20
    assert all(1 <= s["a"] <= 5 and isinstance(s["a"], int) for s in found)
    assert all(0.01 <= s["b"] <= 1.0 for s in found)
    assert sum(s["b"] < 0.1 for s in found) > 4  # half of them, on a log scale
    assert draws(space, 30, seed=1)[:20] == found
    assert draws(space, 20, seed=2) != found


def test_small_spaces_are_drawn_whole() -> None:
    assert len(draws(parse_space(["a=1,2,3"]), 10, seed=0)) == 3
