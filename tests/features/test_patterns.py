"""Patterns answer as `re` does, and in time."""

from __future__ import annotations

import copy
import pickle
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.features.patterns import WordPattern, _reaches_end
from spacy_treecrf.features.settings import checked_patterns
from tests.refusals import assert_refused

SECONDS = 20  # a pattern that backtracks would take years
ATOMS = ["a", "b", "-", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", r"\s", "é", "(?i:A)", "(?-i:b)"]
ATOMS += ["^", "$", r"\A", r"\Z", r"\b", r"\B", "(?s:.)", r"(?a:\w)"]
REPEATS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0,2}?", "{0}"]


def joined(parts: list[str]) -> str:
    return "".join(parts)


patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(joined),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(REPEATS)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda part: f"({part})"),
    ),
    max_leaves=6,
)
flags = st.sampled_from(["", "(?i)", "(?m)", "(?s)", "(?a)", "(?x)"])
texts = st.text(st.sampled_from("abAB-é1_ \n"), max_size=6)


@given(flags, patterns, texts)
@settings(max_examples=600, deadline=None)
def test_states_answer_as_re_does(flag: str, pattern: str, text: str) -> None:
    word_pattern = WordPattern(flag + pattern)
    assert word_pattern.states is not None
    expected = re.search(flag + pattern, text) is not None
    assert _reaches_end(word_pattern.states, text) == expected
    assert word_pattern.found_in(text) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a+)+$",
        r"^(a|a)*$",
        r"^(a|aa)+\Z",
        r"^((a?)*)*$",
        r"(a*)*(a*)*b",
        "a?" * 30 + "a" * 30 + "b",
        r"(a?){30}a{30}b",
        r"a*a*a*a*a*a*a*b",
        r"(x+x+)+y|(a+a+)+c",
    ],
)
@pytest.mark.parametrize("n", [40, 2000])
def test_patterns_with_many_ways_end_in_time(pattern: str, n: int) -> None:
    start = time.monotonic()
    assert not WordPattern(pattern).found_in("a" * n + "!")
    assert time.monotonic() - start < SECONDS


@pytest.mark.parametrize("pattern", [r"^\d+(\.\d+)*\Z", r"^[A-Z][a-z]+(-[A-Z][a-z]+)*$"])
def test_everyday_repetitions_are_allowed(pattern: str) -> None:
    for text in ["1.22.3", "1..2", "Jean-Paul", "Jean-paul", "", "1" * 500 + ".2"]:
        assert WordPattern(pattern).found_in(text) == bool(re.search(pattern, text))


def test_what_only_re_knows_is_used_where_it_is_quick() -> None:
    doubled = WordPattern(r"(.)\1")
    assert doubled.found_in("hello")
    assert not doubled.found_in("world")
    same_half = WordPattern(r"^(.+)\1\Z")
    assert same_half.found_in("abab")
    assert not same_half.found_in("ab" * 5000)  # too long for it


@pytest.mark.parametrize(
    "pattern", [r"(a+)+\1", r"(?=(a+)+b)", r"^(?!.*(a|a)*b)", "a{1,3000}(b+)+"]
)
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    assert_refused(
        lambda: checked_patterns("patterns", {"slow": pattern}),
        "setting 'patterns.slow'",
        "could double with each character",
    )


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", 5, "(" * 5000 + ")" * 5000])
def test_what_is_no_pattern_is_refused(pattern: object) -> None:
    assert_refused(lambda: checked_patterns("patterns", {"bad": pattern}), "setting 'patterns.bad'")


def test_patterns_are_copied_and_pickled() -> None:
    pattern = WordPattern(r"^(a+)+\Z")
    for twin in (copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
        assert twin.found_in("aaa")
        assert not twin.found_in("aab")
