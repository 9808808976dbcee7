"""McNemar's test of whether two systems differ, by the items that only one of them gets right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spacy_treecrf.evaluation.labels import LabelSequence, check_aligned


@dataclass(frozen=True)
class McNemar:
    only_a: int  # items that only A gets right
    only_b: int
    p_exact: float  # binomial, two-sided
    chi2: float  # with the correction for continuity (Edwards 1948)
    p_chi2: float


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """McNemar's test from the two counts of disagreement."""
    if only_a < 0 or only_b < 0:
        raise ValueError(f"treecrf: counts {only_a} and {only_b}; counts are 0 or more")
    n = only_a + only_b
    if not n:
        return McNemar(0, 0, 1.0, 0.0, 1.0)
    chi2 = max(abs(only_a - only_b) - 1, 0) ** 2 / n
    # The upper tail of chi-squared with one degree of freedom.
    return McNemar(
        only_a, only_b, _exact(min(only_a, only_b), n), chi2, math.erfc(math.sqrt(chi2 / 2))
    )


def mcnemar_on_tokens(
    gold: Sequence[LabelSequence], a: Sequence[LabelSequence], b: Sequence[LabelSequence]
) -> McNemar:
    """McNemar's test on the annotated positions."""
    check_aligned(gold, a)
    check_aligned(gold, b)
    only_a = only_b = 0
    for labels, of_a, of_b in zip(gold, a, b, strict=True):
        for wanted, x, y in zip(labels, of_a, of_b, strict=True):
            if wanted is not None and x != y:
                only_a += x == wanted
                only_b += y == wanted
    return mcnemar(only_a, only_b)


def _exact(fewer: int, n: int) -> float:
    """P(a fair coin falls as unevenly in n throws), on both sides."""
    log_half = n * math.log(0.5)
    tail = math.fsum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + log_half)
        for k in range(fewer + 1)
    )
    return min(1.0, 2 * tail)
