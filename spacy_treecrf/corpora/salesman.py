"""A traveling salesman's days: activities in, the cities of the cheapest tour out.

The domain of Kersting and Gutmann (2006, section 5): four cities, eight activities, each to be
done at normal speed or fast, and costs for activities, for haste and for the way. Only the costs of
cities b and d and those of haste in their figure 1 can be read in the text that we have; the other
costs below are our own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits

LAYER = "city"
NORMAL, FAST = "normal", "fast"

# By city, the cost of each activity that can be done there.
ACTIVITY_COSTS: dict[str, dict[int, int]] = {
    "a": {2: 7, 4: 6, 6: 11, 7: 9},
    "b": {1: 11, 3: 3, 5: 5},
    "c": {3: 6, 4: 12, 7: 5, 8: 8},
    "d": {1: 13, 2: 9, 5: 5, 6: 8, 8: 10},
}
# By city, the additional cost of an activity that is done fast.
HASTE_COSTS = {"a": 22, "b": 50, "c": 12, "d": 10}
# The cost of the way between two cities, in both directions; to stay costs nothing.
WAY_COSTS = {"ab": 4, "ac": 6, "ad": 5, "bc": 7, "bd": 3, "cd": 4}

Activity = tuple[int, str]  # number from 1, speed


@dataclass(frozen=True)
class Salesman:
    """An instance of the problem; the defaults are those of the corpus."""

    activities: Mapping[str, Mapping[int, float]] = field(default_factory=lambda: ACTIVITY_COSTS)
    haste: Mapping[str, float] = field(default_factory=lambda: HASTE_COSTS)
    ways: Mapping[str, float] = field(default_factory=lambda: WAY_COSTS)
    seed: int = 0

    def __post_init__(self) -> None:
        if sorted(self.haste) != self.cities:
            raise ValueError("treecrf: haste must have a cost for each city of activities")
        for i, one in enumerate(self.cities):
            for other in self.cities[i + 1 :]:
                if one + other not in self.ways:
                    raise ValueError(f"treecrf: ways has no cost for the way {one + other!r}")

    @property
    def cities(self) -> list[str]:
        return sorted(self.activities)

    @property
    def possible(self) -> list[int]:
        """The activities that some city offers."""
        return sorted({activity for costs in self.activities.values() for activity in costs})

    def tour(self, days: Sequence[Activity]) -> list[str]:
        """The cheapest cities by dynamic programming; among equals, the first in the alphabet."""
        cities = self.cities
        # Going back from the end: the lowest cost of all days from t on, by the city of day t.
        ahead = dict.fromkeys(cities, 0.0)
        rest: list[dict[str, float]] = []
        for t in range(len(days) - 1, -1, -1):
            ahead = {city: self._cost_at(days[t], city) + ahead[city] for city in cities}
            rest.append(ahead)
            ahead = {
                city: min(self._way(city, other) + rest[-1][other] for other in cities)
                for city in cities
            }
        tour: list[str] = []
        for costs in reversed(rest):
            before = tour[-1] if tour else None
            tour.append(min(cities, key=lambda city: (self._way(before, city) + costs[city], city)))
        return tour

    def sample(self, n: int, length: int = 15, stream: str = "all") -> list[LabelledSequence]:
        """n sequences of random activities with their cheapest tours."""
        rng = random.Random(f"{self.seed} {stream}")
        sequences = []
        for i in range(n):
            days = [(rng.choice(self.possible), rng.choice((NORMAL, FAST))) for _ in range(length)]
            sequences.append(
                LabelledSequence(
                    [f"{activity}-{speed}" for activity, speed in days],
                    {LAYER: self.tour(days)},
                    {
                        "activity": [f"act{activity}" for activity, _ in days],
                        "speed": [speed for _, speed in days],
                    },
                    key=f"{stream} {i}",
                )
            )
        return sequences

    def _cost_at(self, day: Activity, city: str) -> float:
        activity, speed = day
        cost = self.activities[city].get(activity, float("inf"))
        return cost + self.haste[city] if speed == FAST else cost

    def _way(self, one: str | None, other: str) -> float:
        if one is None or one == other:
            return 0.0
        return self.ways["".join(sorted((one, other)))]


SPLITS = ("published",)
SIZES = {"train": 92, "test": 8}


def salesman_splits(seed: int) -> Splits:
    """100 sequences of 15 days, 92 for training and 8 for testing, as in the paper."""
    sequences = Salesman(seed=seed).sample(sum(SIZES.values()))
    return {"train": sequences[: SIZES["train"]], "dev": [], "test": sequences[SIZES["train"] :]}
