"""Noisy-OR over bags of future positions (Hao 2009, section 5.3).

The bag of position t is the next `bag` positions of its sequence, fewer near the end, none at the
end. A pattern is at an instance with probability p = sigmoid(G), and in a bag with probability
Q = 1 - prod (1 - p) (eq. 5.11). All is computed as log prod (1 - p) = -sum softplus(G), which is
exact where a p is 0 or 1: an empty bag has log 1 = 0, so Q = 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel
def softplus(x: float) -> float:
    """log(1 + exp(x)), for any x."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def log_none(scores: Doubles, offsets: Ints, first: int, last: int, bag: int, out: Doubles) -> None:
    """out[t] = log of the probability that no instance of t's bag has the pattern.

    scores: (n_rows,), G of every row; sequences first to last - 1 are done. Linear in the rows.
    """
    for s in range(first, last):
        begin = offsets[s]
        end = offsets[s + 1]
        if begin == end:
            continue
        if bag >= end - begin - 1:
            out[end - 1] = 0.0
            for t in range(end - 2, begin - 1, -1):
                out[t] = out[t + 1] - softplus(scores[t + 1])
        else:
            # no running sum: what was added would not be subtracted again without rounding
            for t in range(begin, end):
                out[t] = 0.0
            for i in range(begin + 1, end):
                own = softplus(scores[i])
                for t in range(max(begin, i - bag), i):
                    out[t] -= own


@kernel
def instance_gradient(
    scores: Doubles,
    slopes: Doubles,
    offsets: Ints,
    first: int,
    last: int,
    bag: int,
    gradient: Doubles,
    bags: Doubles,
) -> None:
    """The log-likelihood's derivative by G of each row, summed over the bags that hold it.

    slopes[t] = eta (I(y_t = k) - P(y_t = k)) (1 - p_t); one bag adds slopes[t] * p_tj
    (proposition 5.2). bags: how many bags hold the row, the weight of its examples in a tree.
    """
    for s in range(first, last):
        begin = offsets[s]
        end = offsets[s + 1]
        before = 0.0
        for i in range(begin, end):
            p = math.exp(-softplus(-scores[i]))
            if bag >= end - begin - 1:
                gradient[i] = before * p
                before += slopes[i]
            else:
                total = 0.0
                for t in range(max(begin, i - bag), i):
                    total += slopes[t]
                gradient[i] = total * p
            bags[i] = min(i - begin, bag)


@kernel
def detector_log_likelihood(
    log_nones: Doubles,
    own: Doubles,
    others: Doubles,
    is_own: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float32],
    eta: float,
    first: int,
    last: int,
) -> float:
    """Sum over rows first to last - 1 of log P(y), up to what no detector can change.

    own: score of the detector's class without eta Q. others: log of the sum of exp of the other
    classes' scores. Rows that are not annotated have weight 0.
    """
    total = 0.0
    for row in range(first, last):
        if weights[row] == 0.0:
            continue
        score = own[row] - eta * math.expm1(log_nones[row])
        value = -others[row] - softplus(score - others[row])  # -log(exp(score) + exp(others))
        if is_own[row]:
            value += score
        else:
            value += others[row]
        total += weights[row] * value
    return total
