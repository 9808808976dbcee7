"""How far a label's influence reaches along the chain: the gamma of Chen 2015, section 4.

gamma bounds a row of the Hessian by its diagonal, sum_j |H_ij| <= gamma_i H_ii, so that a round
may treat positions as independent and still never overshoot (to second order).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel


@kernel
def joint_messages(
    pairs: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    messages: npt.NDArray[np.float32],
) -> None:
    """Fill the left and right messages (17), (n_rows, 2), from first-order pair marginals.

    pairs: (n_rows, n_labels, n_labels), P(y_{t-1}, y_t). For higher orders the chain of label
    tuples never mixes within one step, so callers fall back to the length of the sequence.
    """
    n_labels = pairs.shape[2]
    before = np.empty(n_labels)
    after = np.empty(n_labels)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        messages[first, 0] = 0.0
        messages[last - 1, 1] = 0.0
        for t in range(first + 1, last):
            messages[t, 0] = _contraction(pairs[t].T, before, after) * (1.0 + messages[t - 1, 0])
        for t in range(last - 1, first, -1):
            messages[t - 1, 1] = _contraction(pairs[t], before, after) * (1.0 + messages[t, 1])


@kernel
def _contraction(
    pair: npt.NDArray[np.float32],
    totals: npt.NDArray[np.float64],
    smallest: npt.NDArray[np.float64],
) -> float:
    """The contraction 1 - sum_j min_i P(j | i) of theorem 3.1.

    P(j | i) = pair[i, j] / sum_j pair[i, j]
    """
    n_labels = pair.shape[0]
    smallest[:] = np.inf
    for i in range(n_labels):
        totals[i] = 0.0
        for j in range(n_labels):
            totals[i] += pair[i, j]
        if totals[i] > 0.0:
            for j in range(n_labels):
                smallest[j] = min(smallest[j], pair[i, j] / totals[i])
    return float(min(1.0, max(0.0, 1.0 - smallest.sum())))


def node_gamma(messages: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The gamma of nodes (theorem 4.1). messages: (n_rows, 2), left and right; shape: (n_rows,)"""
    return 2.0 * (1.0 + messages[:, 0] + messages[:, 1])


def edge_gamma(
    messages: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """The gamma of the edge that ends in each row (theorem 4.2). shape: (n_rows,)

    The edge of a first row comes from nowhere.
    """
    left = np.zeros(len(messages), np.float32)
    left[1:] = messages[:-1, 0]
    left[starts] = 0.0
    return 2.0 * (3.0 + left + messages[:, 1])
