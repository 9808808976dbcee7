"""A choice of texts within a budget of tokens, greedily, with less for what was chosen before."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A text that may be chosen.

    value: How much there is to learn from it. words: Its tokens, which alone need not be all that
        is new in it. doubts: The share of each token in the value, in any unit.
    """

    value: float
    words: Sequence[str]
    doubts: Sequence[float]


@dataclass(frozen=True)
class Choice:
    """How to choose.

    budget: Tokens that all chosen texts have together; at least one text is chosen. None: all.
    diversity: What a word loses of its share each time that a chosen text has it: 0 nothing, 1
        everything.
    by_token: The power of the length that a value is divided by: 1 ranks by value per token, 0 by
        the value of the whole text.
    """

    budget: int | None = None
    diversity: float = 0.5
    by_token: float = 1.0

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ValueError(f"treecrf: budget is {self.budget}; use 1 token or more")
        for name in ("diversity", "by_token"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"treecrf: {name} is {value}; use 0 to 1")


def choose(candidates: Sequence[Candidate], choice: Choice) -> list[tuple[int, float]]:
    """The numbers of chosen candidates and their gains, in the order in which they were chosen.

    Gains only fall while others are chosen, so that one which is still the largest after it was
    computed anew is the largest of all: most of them are never computed again.
    """
    seen: Counter[str] = Counter()
    spent = 0
    chosen: list[tuple[int, float]] = []
    for i, gain in _by_gain(candidates, choice, seen):
        length = len(candidates[i].words)
        if chosen and choice.budget is not None and spent + length > choice.budget:
            break
        chosen.append((i, gain))
        spent += length
        seen.update(candidates[i].words)
    return chosen


def _by_gain(
    candidates: Sequence[Candidate], choice: Choice, seen: Counter[str]
) -> Iterator[tuple[int, float]]:
    """Candidates with their gains, the largest first; `seen` is filled by the caller meanwhile."""
    heap = [(-_gain(one, choice, seen), i, 0) for i, one in enumerate(candidates) if one.words]
    heapq.heapify(heap)
    step = 0
    while heap:
        gain, i, computed = heapq.heappop(heap)
        if computed == step:
            yield i, -gain
            step += 1
        else:
            heapq.heappush(heap, (-_gain(candidates[i], choice, seen), i, step))


def _gain(candidate: Candidate, choice: Choice, seen: Counter[str]) -> float:
    value = candidate.value / float(len(candidate.words) ** choice.by_token)
    total = sum(candidate.doubts)
    if not choice.diversity or total <= 0.0:
        return value
    kept = 1.0 - choice.diversity
    left = sum(
        doubt * kept ** seen[word] if word in seen else doubt
        for word, doubt in zip(candidate.words, candidate.doubts, strict=True)
    )
    return value * left / total
