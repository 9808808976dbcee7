"""The choice of texts, against one that computes every gain anew in every step."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.suggest.selection import Candidate, Choice, choose


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    words = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6))
    doubts = draw(st.lists(st.floats(0.01, 1.0), min_size=len(words), max_size=len(words)))
    return Candidate(draw(st.floats(0.0, 10.0)), words, doubts)


def naive(texts: list[Candidate], choice: Choice) -> list[int]:
    """Greedy by definition; ties go to the first."""
    seen: Counter[str] = Counter()
    chosen: list[int] = []
    spent = 0
    while len(chosen) < len(texts):

        def gain(i: int) -> float:
            one = texts[i]
            kept = 1.0 - choice.diversity
            left = sum(d * kept ** seen[w] for w, d in zip(one.words, one.doubts, strict=True))
            return one.value / len(one.words) ** choice.by_token * left / sum(one.doubts)

        best = max((i for i in range(len(texts)) if i not in chosen), key=lambda i: (gain(i), -i))
        if chosen and choice.budget and spent + len(texts[best].words) > choice.budget:
            break
        chosen.append(best)
        spent += len(texts[best].words)
        seen.update(texts[best].words)
    return chosen


@settings(deadline=None)
@given(
    texts=st.lists(candidates(), min_size=1, max_size=12),
    budget=st.one_of(st.none(), st.integers(1, 30)),
    diversity=st.sampled_from([0.0, 0.3, 0.9]),
    by_token=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_it_is_the_greedy_choice(texts, budget, diversity, by_token):
    choice = Choice(budget, diversity, by_token)
    found = choose(texts, choice)
    chosen = [i for i, _ in found]
    assert len(set(chosen)) == len(chosen)
    expected = naive(texts, choice)
    gains = [gain for _, gain in found]
    assert gains == sorted(gains, reverse=True)
    if chosen != expected:  # only where gains are equal but for rounding
        assert len(chosen) == len(expected) or budget is not None
        first = next(i for i, (a, b) in enumerate(zip(chosen, expected, strict=False)) if a != b)
        again = choose([texts[expected[first]]], Choice(None, 0.0, by_token))[0][1]
        assert gains[first] <= again * (1 + 1e-9)


def test_a_budget_is_kept_but_for_the_first_text():
    long, short = Candidate(9.0, ["a"] * 9, [1.0] * 9), Candidate(1.0, ["b"] * 3, [1.0] * 3)
    assert [i for i, _ in choose([long, short], Choice(4))] == [0]
    assert [i for i, _ in choose([long, short], Choice(12))] == [0, 1]


def test_diversity_prefers_new_words():
    twins = [Candidate(1.0, ["a"], [1.0]), Candidate(0.9, ["a"], [1.0])]
    other = Candidate(0.6, ["b"], [1.0])
    assert [i for i, _ in choose([*twins, other], Choice(None, 0.5))] == [0, 2, 1]
    assert [i for i, _ in choose([*twins, other], Choice(None, 0.0))] == [0, 1, 2]


def test_values_may_count_by_token_or_by_text():
    long, short = Candidate(3.0, ["a"] * 6, [1.0] * 6), Candidate(1.0, ["b"], [1.0])
    assert [i for i, _ in choose([long, short], Choice(None, 0.0, 1.0))] == [1, 0]
    assert [i for i, _ in choose([long, short], Choice(None, 0.0, 0.0))] == [0, 1]


def test_texts_without_tokens_are_never_chosen():
    assert choose([Candidate(1.0, [], [])], Choice()) == []


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"diversity": 1.5}, {"by_token": -0.1}])
def test_impossible_choices_are_refused(wrong):
    with pytest.raises(ValueError, match=f"treecrf: {next(iter(wrong))} is "):
        Choice(**wrong)
