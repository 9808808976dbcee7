"""True labels from given ones that may be wrong, and from models that have not seen these.

q(y) is proportional to p(y | x)^sharpness times the product over t of
c(given_t | y_t, whether given_{t-1} was wrong): errors come in runs, as spans are dropped or moved
as a whole. A model of noisy labels is as unsure as they are; the power undoes that. The noise c is
estimated by EM from what q expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import (
    EVERYTHING_ALLOWED,
    Chain,
    ScoredChunk,
    pair_marginals_kernel,
)
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers

# shape: (2, n_labels, n_labels), P(given | true) behind a label that was right, and a wrong one
Noise = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.float32]
# What is known of the noise beforehand counts as so many positions of each true label.
PRIOR_ROWS = 10.0
ESTIMATES = 4


@dataclass(frozen=True)
class Judged:
    """Sequences with their given labels, and what a model says that has not seen these.

    scores: (n_rows, 1 or n_labels, n_labels)
    """

    data: Sequences
    scores: npt.NDArray[np.float32]
    chain: Chain

    def sharpened(self, sharpness: float) -> Judged:
        """The same under p(y | x)^sharpness, of order 1."""
        chain, power = self.chain, np.float32(sharpness)
        if chain.order == 0:
            of_order_one = Chain.free(chain.n_labels, 1)
        else:
            start, trans, end = (power * part for part in (chain.start, chain.trans, chain.end))
            of_order_one = Chain(1, start, trans, end)
        return Judged(self.data, power * self.scores, of_order_one)


def first_noise(given: npt.NDArray[np.int32], n_labels: int, share: float) -> Noise:
    """The noise before anything is learned; share: Of wrong labels, and of right ones behind them.

    A wrong label is any one, as often as it is given at all.
    """
    known = given[given != UNKNOWN_LABEL]
    frequency = np.bincount(known, minlength=n_labels) / max(1, len(known))
    right = np.eye(n_labels)
    return np.stack(
        [(1.0 - share) * right + share * frequency, share * right + (1.0 - share) * frequency]
    )


def true_labels(
    parts: Sequence[Judged], share: float, sharpness: float, workers: Workers
) -> tuple[list[Pairs], Noise]:
    """q's probabilities of neighbouring labels of each part, and the noise.

    shape: (n_rows, n_labels, n_labels); those of first positions are in row 0 of theirs.
    """
    sharp = [part.sharpened(sharpness) for part in parts]
    n_labels = sharp[0].chain.n_labels
    given = np.concatenate([part.data.labels for part in sharp])
    prior = noise = first_noise(given, n_labels, share)
    for _ in range(ESTIMATES):
        counts = PRIOR_ROWS * prior
        for part in sharp:
            counts += noise_counts(part.data, posterior(part, noise, workers))
        noise = counts / counts.sum(axis=2, keepdims=True)
    return [posterior(part, noise, workers) for part in sharp], noise


def posterior(judged: Judged, noise: Noise, workers: Workers) -> Pairs:
    """q under this noise; the power of p is in the scores and the chain already."""
    data, n_labels = judged.data, judged.chain.n_labels
    pairs = np.zeros((data.n_rows, n_labels, n_labels), np.float32)

    def infer(chunk: tuple[int, int]) -> None:
        rows = data.rows_of(chunk)
        offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
        scores = judged.scores[rows] + log_weights(data.labels[rows], offsets, noise)
        part = ScoredChunk(scores, offsets, 0, len(offsets) - 1)
        log_z = np.empty(len(offsets) - 1)
        pair_marginals_kernel(part, judged.chain, EVERYTHING_ALLOWED, pairs[rows], log_z)

    workers.map(infer, data.chunks)
    return pairs


def log_weights(
    given: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], noise: Noise
) -> npt.NDArray[np.float32]:
    """log c of each row, by the true label before and its own. (n_rows, n_labels, n_labels)"""
    n_labels = noise.shape[1]
    with np.errstate(divide="ignore"):
        by_given = np.log(noise).astype(np.float32).transpose(0, 2, 1)  # before, given, true
    wrong_before = _wrong_before(given, offsets, n_labels)
    after_right, after_wrong = (
        np.where(given[:, None] == UNKNOWN_LABEL, np.float32(0.0), table[np.maximum(given, 0)])
        for table in by_given
    )
    found: npt.NDArray[np.float32] = np.where(
        wrong_before[:, :, None], after_wrong[:, None, :], after_right[:, None, :]
    )
    return found


def noise_counts(data: Sequences, pairs: Pairs) -> Noise:
    """How often q expects a label to be given for a true one, behind right and wrong ones."""
    n_labels = pairs.shape[1]
    counts = np.zeros((2, n_labels, n_labels))
    known = data.labels != UNKNOWN_LABEL
    wrong_before = _wrong_before(data.labels, data.offsets, n_labels)
    for wrong in (0, 1):
        expected = np.einsum("tu,tuv->tv", wrong_before == wrong, pairs, dtype=float)
        np.add.at(counts[wrong].T, data.labels[known], expected[known])
    return counts


def _wrong_before(
    given: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], n_labels: int
) -> npt.NDArray[np.bool_]:
    """Whether the given label before is wrong if a label is the true one. (n_rows, n_labels)"""
    before = np.full(len(given), UNKNOWN_LABEL, np.int32)
    before[1:] = given[:-1]
    before[offsets[:-1]] = UNKNOWN_LABEL
    found: npt.NDArray[np.bool_] = (before[:, None] != np.arange(n_labels)) & (
        before[:, None] != UNKNOWN_LABEL
    )
    return found
