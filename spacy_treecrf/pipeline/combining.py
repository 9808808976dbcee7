"""The best labellings of a doc from the best labellings of its sequences."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

Choice = tuple[list[str], float]  # labels and log probability


def best_combinations(choices: Sequence[Sequence[Choice]], n: int) -> list[tuple[list[str], float]]:
    """The n most probable choices of one labelling for each sequence, with probabilities.

    choices: of each sequence its own best labellings, falling. The n best of all sequences up to
    one only need the n best of those before it.
    """
    best: list[Choice] = [([], 0.0)]
    for own in choices:
        joined = ((labels + more, log_p + log_q) for labels, log_p in best for more, log_q in own)
        best = heapq.nlargest(n, joined, key=lambda choice: choice[1])
    return [(labels, math.exp(log_p)) for labels, log_p in best]
