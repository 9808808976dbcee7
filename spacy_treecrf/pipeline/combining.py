"""The best labellings of a doc from the best labellings of its sequences."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

Choice = tuple[list[str], float]  # labels and log probability


def best_combinations(choices: Sequence[Sequence[Choice]], n: int) -> list[tuple[list[str], float]]:
    """The n most probable choices of one labelling for each sequence, with probabilities.

    choices: of each sequence its own best labellings, falling. The n best of all sequences up to
    one only need the n best of those before it.
    """
    best: list[tuple[float, Any]] = [(0.0, None)]  # with the labellings as a chain: (before, last)
    for own in choices:
        joined = ((p + q, (chain, labels)) for p, chain in best for labels, q in own)
        best = heapq.nlargest(n, joined, key=lambda choice: choice[0])
    return [(_labels(chain), math.exp(log_p)) for log_p, chain in best]


def _labels(chain: Any) -> list[str]:
    parts: list[list[str]] = []
    while chain is not None:
        chain, labels = chain
        parts.append(labels)
    return [label for labels in reversed(parts) for label in labels]
