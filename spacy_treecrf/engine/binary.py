"""Inference in chains of two states: what a bit of an output code is, given all of its sequence.

A bit has one score at each position, the log-odds of 1, and a table of edges: edges[u, v] joins
neighbours, edges[2, v] is the first position's. The same quantities as `chain.py` computes for two
labels, in a few operations for each position.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

# Odds beyond exp(60) are certainty: cutting scores there, no product can underflow.
MAX_SCORE = 60.0
UNKNOWN_BIT = -1


@njit(nogil=True, cache=True)
def _edge_factors(edges: Floats, factors: Doubles) -> None:
    """exp(edges - their maximum) into factors (3, 2); the first position's have their own."""
    top = -np.inf
    first = -np.inf
    for v in range(2):
        top = max(top, edges[0, v], edges[1, v])
        first = max(first, edges[2, v])
    for v in range(2):
        for u in range(2):
            factors[u, v] = math.exp(max(edges[u, v] - top, -MAX_SCORE))
        factors[2, v] = math.exp(max(edges[2, v] - first, -MAX_SCORE))


@njit(nogil=True, cache=True)
def _pass(
    scores: Floats,
    begin: int,
    length: int,
    factors: Doubles,
    bits: npt.NDArray[np.int8],
    clamp: bool,
    forward: Doubles,
    emission: Doubles,
    scale: Doubles,
    ones: Floats,
    pair_sums: Doubles,
    weight: float,
) -> float:
    """Forward-backward of one sequence; `clamp` keeps the bits that are known.

    P(bit = 1) into ones, expected pairs times weight onto pair_sums (3, 2); returns log Z without
    the edges' maxima.
    """
    log_z = 0.0
    for t in range(length):
        score = min(max(float(scores[begin + t]), -MAX_SCORE), MAX_SCORE)
        top = max(score, 0.0)
        zero = math.exp(-top)
        one = math.exp(score - top)
        if clamp and bits[begin + t] == 1:
            zero = 0.0
        elif clamp and bits[begin + t] == 0:
            one = 0.0
        emission[t, 0] = zero
        emission[t, 1] = one
        if t == 0:
            zero *= factors[2, 0]
            one *= factors[2, 1]
        else:
            zero *= forward[t - 1, 0] * factors[0, 0] + forward[t - 1, 1] * factors[1, 0]
            one *= forward[t - 1, 0] * factors[0, 1] + forward[t - 1, 1] * factors[1, 1]
        total = zero + one
        scale[t] = total
        forward[t, 0] = zero / total
        forward[t, 1] = one / total
        log_z += top + math.log(total)
    back_zero = 1.0
    back_one = 1.0
    for t in range(length - 1, -1, -1):
        zero = forward[t, 0] * back_zero
        one = forward[t, 1] * back_one
        p = one / (zero + one)
        ones[begin + t] = p
        if t == 0:
            pair_sums[2, 0] += weight * (1.0 - p)
            pair_sums[2, 1] += weight * p
            break
        in_zero = emission[t, 0] * back_zero / scale[t]
        in_one = emission[t, 1] * back_one / scale[t]
        for u in range(2):
            mass = weight * forward[t - 1, u]
            pair_sums[u, 0] += mass * factors[u, 0] * in_zero
            pair_sums[u, 1] += mass * factors[u, 1] * in_one
        back_zero = factors[0, 0] * in_zero + factors[0, 1] * in_one
        back_one = factors[1, 0] * in_zero + factors[1, 1] * in_one
    return log_z


@njit(nogil=True, cache=True)
def _longest(offsets: npt.NDArray[np.int64]) -> int:
    longest = 1
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@njit(nogil=True, cache=True)
def bit_marginals(
    scores: Floats, offsets: npt.NDArray[np.int64], edges: Floats, ones: Floats
) -> None:
    """P(bit = 1) of every row into ones. scores: (n_rows,), edges: (3, 2)"""
    factors = np.empty((3, 2))
    _edge_factors(edges, factors)
    longest = _longest(offsets)
    forward = np.empty((longest, 2))
    emission = np.empty((longest, 2))
    scale = np.empty(longest)
    pairs = np.zeros((3, 2))
    nothing = np.zeros(0, np.int8)
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        _pass(
            scores,
            begin,
            length,
            factors,
            nothing,
            False,
            forward,
            emission,
            scale,
            ones,
            pairs,
            1.0,
        )


@njit(nogil=True, cache=True)
def bit_residuals(
    scores: Floats,
    offsets: npt.NDArray[np.int64],
    edges: Floats,
    bits: npt.NDArray[np.int8],
    weights: Floats,
    max_step: float,
    g: Floats,
    h: Floats,
    observed: Doubles,
    expected: Doubles,
) -> float:
    """Gradient and hessian bound of the log-likelihood, which is returned.

    bits: (n_rows,) 0, 1, or -1 where not annotated. weights: (n_rows,), one for each sequence.
    g, h: (n_rows,). observed, expected: (3, 2), sums over positions of the pairs that are
    annotated (or expected given what is) and of those that the model expects.
    """
    factors = np.empty((3, 2))
    _edge_factors(edges, factors)
    longest = _longest(offsets)
    forward = np.empty((longest, 2))
    emission = np.empty((longest, 2))
    scale = np.empty(longest)
    known = np.empty(len(scores), np.float32)
    log_likelihood = 0.0
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        if length == 0:
            continue
        weight = float(weights[begin])
        free = _pass(
            scores,
            begin,
            length,
            factors,
            bits,
            False,
            forward,
            emission,
            scale,
            g,
            expected,
            weight,
        )
        clamped = _pass(
            scores,
            begin,
            length,
            factors,
            bits,
            True,
            forward,
            emission,
            scale,
            known,
            observed,
            weight,
        )
        log_likelihood += weight * (clamped - free)
        for row in range(begin, begin + length):
            p = float(g[row])
            residual = float(known[row]) - p
            # h >= |g| / max_step: no leaf can exceed max_step ("robust Newton")
            g[row] = weight * residual
            h[row] = weight * max(p * (1.0 - p), abs(residual) / max_step)
    return log_likelihood
