"""The best labellings of a doc, combined from the best labellings of its sequences."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Choice = tuple[list[str], float]  # labels and log probability


def best_labellings(
    found: Iterable[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]],
    names: Sequence[str],
    n: int,
) -> list[tuple[list[str], float]]:
    """The n most probable labellings of a doc, with their probabilities.

    found: The best labellings of each sequence: ids of names (n, length), log probabilities (n,).
    """
    choices = [
        [([names[y] for y in path], log_p) for path, log_p in zip(paths, log_ps, strict=True)]
        for paths, log_ps in found
    ]
    return best_combinations(choices, n)


def best_combinations(choices: Sequence[Sequence[Choice]], n: int) -> list[tuple[list[str], float]]:
    """The n most probable choices of one labelling for each sequence, with their probabilities.

    The n best combinations of the first sequences are all that the next sequence needs.

    choices: The best labellings of each sequence, by falling probability.
    """
    # log probabilities with labellings as linked lists: (before, last)
    best: list[tuple[float, Any]] = [(0.0, None)]
    for own in choices:
        best = [(p, (best[i][1], own[j][0])) for p, i, j in _best_pairs(best, own, n)]
    return [(_labels(chain), math.exp(log_p)) for log_p, chain in best]


def _best_pairs(
    best: Sequence[tuple[float, Any]], own: Sequence[Choice], n: int
) -> Iterator[tuple[float, int, int]]:
    """The n largest sums of one log probability each, with their places, the largest first.

    Both are sorted. A place of `best` is looked at once the place before it was used.
    """
    heap = [(-(best[0][0] + own[0][1]), 0, 0)] if best and own else []
    while heap and n:
        value, i, j = heapq.heappop(heap)
        yield -value, i, j
        n -= 1
        if j == 0 and i + 1 < len(best):
            heapq.heappush(heap, (-(best[i + 1][0] + own[0][1]), i + 1, 0))
        if j + 1 < len(own):
            heapq.heappush(heap, (-(best[i][0] + own[j + 1][1]), i, j + 1))


def _labels(chain: Any) -> list[str]:
    parts: list[list[str]] = []
    while chain is not None:
        chain, labels = chain
        parts.append(labels)
    return [label for labels in reversed(parts) for label in labels]
