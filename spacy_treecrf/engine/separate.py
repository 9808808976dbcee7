"""Inference tuned for family "separate": node scores, and one transition matrix or none.

The same quantities as `chain.py` computes for any family and order, but with N*K exponentials
instead of N*K*K, contiguous inner loops, and pairwise marginals summed over positions only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

# A mass this small may be all that hard constraints leave in the end, and soon underflows: the
# caller then redoes the sequence by the general kernels, which can work in log space.
UNDERFLOW = 1e-100


def factors_of(part: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float64] | None, float]:
    """exp(part - top) and top; None where a possible transition would be lost as a factor."""
    possible = part > -np.inf
    top = float(part[possible].max()) if possible.any() else 0.0
    factors = np.exp(part.astype(float) - top)
    return (None if np.any(possible & (factors <= UNDERFLOW)) else factors), top


@njit(nogil=True, cache=True)
def _contraction(
    weight: npt.NDArray[np.float64],
    target: npt.NDArray[np.float64],
    source: npt.NDArray[np.float64],
    smallest: npt.NDArray[np.float64],
) -> float:
    """1 - sum_j min_i P(j | i), P(j | i) = weight[i, j] target[j] / source[i] (theorem 3.1)."""
    n_labels = len(target)
    smallest[:] = np.inf
    for i in range(n_labels):
        if source[i] > 0.0:
            inverse = 1.0 / source[i]
            for j in range(n_labels):
                ratio = weight[i, j] * inverse
                smallest[j] = ratio if ratio < smallest[j] else smallest[j]
    kept = 0.0
    for j in range(n_labels):
        if target[j] > 0.0:
            kept += target[j] * smallest[j]
    return min(1.0, max(0.0, 1.0 - kept))


@njit(nogil=True, cache=True)
def forward_backward(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    first: int,
    last: int,
    start: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    sequence_weights: npt.NDArray[np.float64],
    want_mixing: bool,
    marginals: npt.NDArray[np.float32],
    pair_sums: npt.NDArray[np.float64],
    log_z: npt.NDArray[np.float64],
    mixing: npt.NDArray[np.float32],
) -> int:
    """Marginals of sequences first..last; `start`, `weight`, `end` are exponentiated transitions.

    scores and marginals: (n_rows, n_labels); pair_sums: (n_labels, n_labels), summed over all
    positions, each times its sequence's weight; mixing: (n_rows, 2), the left and right
    messages of Chen 2015 (17).
    Returns the number of sequences that underflowed; their log_z is set to NaN.
    """
    n_labels = scores.shape[1]
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    emission = np.empty((longest, n_labels))
    forward = np.empty((longest, n_labels))
    arrival = np.empty((longest, n_labels))  # forward mass before the emission is applied
    weight_t = np.ascontiguousarray(weight.T)
    outer = np.zeros((n_labels, n_labels))
    inward = np.empty(n_labels)
    backward = np.empty(n_labels)
    smallest = np.empty(n_labels)
    scale = np.empty(longest)
    failed = 0
    for s in range(first, last):
        row = offsets[s]
        length = offsets[s + 1] - row
        log_scale = 0.0
        fine = True
        for t in range(length):
            top = scores[row + t, 0]
            for k in range(1, n_labels):
                top = max(top, scores[row + t, k])
            for k in range(n_labels):
                emission[t, k] = np.exp(np.float64(scores[row + t, k] - top))
                fine &= emission[t, k] > UNDERFLOW or scores[row + t, k] == -np.inf
            if t == 0:
                arrival[0, :] = start
            else:
                arrival[t, :] = 0.0
                for i in range(n_labels):
                    mass = forward[t - 1, i]
                    if mass > 0.0:
                        for j in range(n_labels):
                            arrival[t, j] += mass * weight[i, j]
            if t == length - 1:
                for k in range(n_labels):
                    emission[t, k] *= end[k]
            total = 0.0
            for k in range(n_labels):
                forward[t, k] = arrival[t, k] * emission[t, k]
                total += forward[t, k]
            if not (fine and total > UNDERFLOW):
                fine = False
                break
            scale[t] = total
            inverse = 1.0 / total
            for k in range(n_labels):
                forward[t, k] *= inverse
                fine &= forward[t, k] == 0.0 or forward[t, k] > UNDERFLOW
            log_scale += np.log(total) + top
        if not fine:
            log_z[s] = np.nan
            failed += 1
            continue
        log_z[s] = log_scale
        backward[:] = 1.0
        right = 0.0
        for t in range(length - 1, -1, -1):
            for k in range(n_labels):
                marginals[row + t, k] = forward[t, k] * backward[k]
            if want_mixing:
                mixing[row + t, 1] = right
            if t == 0:
                break
            inverse = 1.0 / scale[t]
            for k in range(n_labels):
                # A state that nothing reaches may have any backward mass, even an infinite one.
                reached = forward[t, k] > 0.0
                inward[k] = emission[t, k] * backward[k] * inverse if reached else 0.0
            for i in range(n_labels):
                mass = forward[t - 1, i] * sequence_weights[s]
                if mass > 0.0:
                    for j in range(n_labels):
                        outer[i, j] += mass * inward[j]
            backward[:] = 0.0
            for j in range(n_labels):
                mass = inward[j]
                if mass > 0.0:
                    for i in range(n_labels):
                        backward[i] += mass * weight_t[j, i]
            if want_mixing:
                # P(y_t = j | y_{t-1} = i) = weight[i, j] inward[j] / backward[i]
                right = _contraction(weight, inward, backward, smallest) * (1.0 + right)
        if want_mixing:
            left = 0.0
            mixing[row, 0] = 0.0
            for t in range(1, length):
                # P(y_{t-1} = i | y_t = j) = forward[t-1, i] weight[i, j] / arrival[t, j]
                left = _contraction(weight_t, forward[t - 1], arrival[t], smallest) * (1.0 + left)
                mixing[row + t, 0] = left
    for i in range(n_labels):
        for j in range(n_labels):
            pair_sums[i, j] += outer[i, j] * weight[i, j]
    return failed


@njit(nogil=True, cache=True)
def independent(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    marginals: npt.NDArray[np.float32],
    log_z: npt.NDArray[np.float64],
) -> None:
    """Order 0: the softmax of every row. scores and marginals: (n_rows, n_labels)"""
    n_labels = scores.shape[1]
    weight = np.empty(n_labels)
    for s in range(len(log_z)):
        log_z[s] = 0.0
        for row in range(offsets[s], offsets[s + 1]):
            top = scores[row, 0]
            for k in range(1, n_labels):
                top = max(top, scores[row, k])
            total = 0.0
            for k in range(n_labels):
                weight[k] = np.exp(np.float64(scores[row, k] - top))
                total += weight[k]
            inverse = 1.0 / total
            for k in range(n_labels):
                marginals[row, k] = weight[k] * inverse
            log_z[s] += top + np.log(total)
