"""Line searches over a bounded range whose best step may have any magnitude."""

from __future__ import annotations

import math
from collections.abc import Callable

# Steps high, high / 4, high / 16, ... are tried, then the neighbourhood of the best of them.
RATIO = 4.0
REFINEMENTS = 6
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def maximise(
    value_at: Callable[[float], float], high: float, at_zero: float, magnitudes: int
) -> tuple[float, float]:
    """The best step found in [0, high] and its value; step 0 unless another is better.

    value_at: what to maximise; a value that is not a number counts as worse than all.
    magnitudes: how many powers of 4 below `high` are tried.
    """
    best, best_value = 0.0, at_zero
    known: dict[float, float] = {}

    def at(exponent: float) -> float:
        nonlocal best, best_value
        if exponent not in known:
            step = high * RATIO**-exponent
            value = value_at(step)
            known[exponent] = -math.inf if math.isnan(value) else value
            if known[exponent] > best_value:
                best, best_value = step, known[exponent]
        return known[exponent]

    coarse = [float(i) for i in range(magnitudes + 1)]
    top = max(coarse, key=at)
    if best == 0.0:
        return best, best_value
    low, up = max(0.0, top - 1.0), top + 1.0
    # golden section: one inner point is that of the round before
    left, right = up - _GOLDEN * (up - low), low + _GOLDEN * (up - low)
    for _ in range(REFINEMENTS):
        if at(left) >= at(right):
            up, right = right, left
            left = up - _GOLDEN * (up - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (up - low)
    return best, best_value
