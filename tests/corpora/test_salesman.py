"""The traveling salesman's tours, against all tours there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import pytest

from spacy_treecrf.corpora import Salesman, load_corpus
from spacy_treecrf.corpora.salesman import ACTIVITY_COSTS, FAST, NORMAL, Activity


def cost(salesman: Salesman, days: Sequence[Activity], tour: Sequence[str]) -> float:
    """The cost of doing the activities in these cities; infinite where one is not to be had."""
    total = 0.0
    for (activity, speed), city in zip(days, tour, strict=True):
        total += salesman.activities[city].get(activity, float("inf"))
        total += salesman.haste[city] if speed == FAST else 0.0
    return total + sum(salesman.ways["".join(sorted(p))] for p in pairwise(tour) if p[0] != p[1])


@pytest.mark.parametrize("seed", range(5))
def test_tours_are_the_cheapest_of_all(seed) -> None:
    salesman = Salesman(seed=seed)
    for sequence in salesman.sample(6, length=5):
        days = [(int(word[0]), word[2:]) for word in sequence.words]
        costs = {tour: cost(salesman, days, tour) for tour in product("abcd", repeat=5)}
        best = min(costs.values())
        tour = tuple(sequence.labels["city"])
        assert costs[tour] == best < float("inf")
        # and of those the first in the alphabet
        assert tour == min(t for t, total in costs.items() if total == best)


def test_a_tour_worked_by_hand() -> None:
    """Activity 1 fast: 11 + 50 in b, 13 + 10 in d. Then 3: 3 in b, one way of 3 from d; or 6 in c,
    a way of 4."""
    salesman = Salesman()
    days = [(1, FAST), (3, NORMAL)]
    assert salesman.tour(days) == ["d", "b"]
    assert cost(salesman, days, "db") == 23 + 3 + 3
    assert cost(salesman, days, "bb") == 61 + 3
    assert cost(salesman, days, "dc") == 23 + 4 + 6
    assert cost(salesman, days, "ab") == float("inf")
    assert salesman.tour([]) == []


def test_every_activity_can_be_done_somewhere() -> None:
    assert Salesman().possible == list(range(1, 9))
    assert set("".join(ACTIVITY_COSTS)) == set("abcd")


def test_the_corpus_is_that_of_the_paper_and_comes_again() -> None:
    splits = load_corpus("salesman", dev_share=0.0)
    assert [len(splits[part]) for part in ("train", "dev", "test")] == [92, 0, 8]
    for sequences in splits.values():
        for sequence in sequences:
            assert len(sequence.words) == 15
            assert set(sequence.labels["city"]) <= set("abcd")
            assert set(sequence.features["speed"]) <= {NORMAL, FAST}
    assert splits == load_corpus("salesman", dev_share=0.0)
    assert splits != load_corpus("salesman", dev_share=0.0, seed=1)
    cities = {city for sequence in splits["train"] for city in sequence.labels["city"]}
    assert cities == set("abcd")
    held_out = load_corpus("salesman")
    assert len(held_out["train"]) + len(held_out["dev"]) == 92
    assert held_out["dev"]


@pytest.mark.parametrize(
    ("wrong", "part"), [({"haste": {"a": 1.0}}, "haste"), ({"ways": {"ab": 1}}, "'ac'")]
)
def test_incomplete_instances_are_refused(wrong, part) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: .*{part}"):
        Salesman(**wrong)
