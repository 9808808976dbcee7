"""Linear rounds: one weight per (feature, class), all fitted at once by the second-order bound.

The bound is separable over classes, sum_t g_tk d_tk - h_tk d_tk^2 / 2 for score changes d. Along
d = X v its curvature is known exactly once the scores X v are, so each class takes the best
combination of two directions: the diagonal Newton step and its previous step. That is
preconditioned conjugate gradients on a bound which is renewed every round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear_scoring import add_linear_scores
from spacy_treecrf.engine.boosting.residuals import ALL_ROWS, GradientOfLabel
from spacy_treecrf.engine.exact_sums import exact_total
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.sequences import BLOCK_ROWS, CHUNK_ROWS, Sequences, cut_rows
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import EntryDraw, collect_in
from spacy_treecrf.engine.trees.histogram import N_BINS
from spacy_treecrf.engine.trees.tree_input import Entries

BLOCK_CHUNKS = BLOCK_ROWS // CHUNK_ROWS
# Scores of the rows of a slice. shape: (n_rows, n_labels)
ScoresOfRows = Callable[[slice], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class LinearWeights:
    """The weights of all features and numeric columns, for each label."""

    categorical: npt.NDArray[np.float32]  # shape: (n_features, n_labels)
    numeric: npt.NDArray[np.float32]  # shape: (n_numeric, n_labels), of standardised values

    @classmethod
    def zeros(cls, n_features: int, n_numeric: int, n_labels: int) -> LinearWeights:
        return cls(
            np.zeros((n_features, n_labels), np.float32),
            np.zeros((n_numeric, n_labels), np.float32),
        )

    @classmethod
    def nothing(cls, n_features: int, n_numeric: int, n_labels: int) -> LinearWeights:
        """Zeros that take no memory and cannot be written to."""
        zero = np.zeros((), np.float32)
        return cls(
            np.broadcast_to(zero, (n_features, n_labels)),
            np.zeros((n_numeric, n_labels), np.float32),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of features, numeric columns and labels."""
        return (len(self.categorical), *self.numeric.shape)

    def is_zero(self) -> bool:
        if self.categorical.strides == (0, 0):  # one number for all
            return not (self.categorical[:1, :1].any() or self.numeric.any())
        return not (self.categorical.any() or self.numeric.any())

    def scaled(self, factor: float) -> LinearWeights:
        """The weights multiplied by a factor."""
        if self.is_zero():
            return self
        return LinearWeights(
            to_grid(self.categorical * np.float64(factor)),
            to_grid(self.numeric * np.float64(factor)),
        )

    def toward(self, other: LinearWeights, share: float) -> LinearWeights:
        """The weights that lie the given share of the way from these to the others."""
        return LinearWeights(
            to_grid(self.categorical + share * (other.categorical - self.categorical)),
            to_grid(self.numeric + share * (other.numeric - self.numeric)),
        )

    def bin_scores(self, bin_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """What each bin of each numeric column adds. shape: (n_numeric, N_BINS, n_labels)"""
        return to_grid(bin_values[:, :, None] * self.numeric[:, None, :].astype(np.float64))


class LinearScorer:
    """Linear weights prepared for scoring many sequences."""

    def __init__(self, weights: LinearWeights, bin_values: npt.NDArray[np.float64]) -> None:
        self.is_zero = weights.is_zero()
        self.categorical = weights.categorical
        if not self.is_zero:
            self.categorical = np.ascontiguousarray(self.categorical)
            self.bin_scores = weights.bin_scores(bin_values)

    def score(
        self, data: Sequences, workers: Workers, rows: slice = ALL_ROWS
    ) -> npt.NDArray[np.float32]:
        """The linear part of the scores of some rows. shape: (n_rows, n_labels)"""
        first, last, _ = rows.indices(data.n_rows)
        out = workers.storage.zeros((last - first, self.categorical.shape[1]), np.float32)
        if self.is_zero:
            return out
        rows = slice(first, last)
        return _score(data, rows, self.categorical, self.bin_scores, workers, out)


def linear_scores(
    data: Sequences, weights: LinearWeights, bin_values: npt.NDArray[np.float64], workers: Workers
) -> npt.NDArray[np.float32]:
    """The linear part of the scores. shape: (n_rows, n_labels)"""
    return LinearScorer(weights, bin_values).score(data, workers)


def _score(
    data: Sequences,
    rows: slice,
    categorical: npt.NDArray[np.float32],
    bin_scores: npt.NDArray[np.float32],
    workers: Workers,
    out: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Scores of some rows, from weights of features and scores of bins.

    out: (n_rows, n_labels), 0 before; it is what is returned.
    """

    def score(piece: slice) -> None:
        first = rows.start + piece.start
        add_linear_scores(
            data.feature_ids, data.numeric, categorical, bin_scores, first, out[piece]
        )

    workers.map(score, cut_rows(len(out), CHUNK_ROWS))
    return out


class FeatureSums(NamedTuple):
    """Sums of gradient and hessian in whole numbers, of one class."""

    categorical: npt.NDArray[np.float64]  # shape: (n_features, 2)
    bins: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 2)


@kernel
def sum_up_features(
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    entries: Entries,
    n_features: int,
) -> FeatureSums:
    """Return the sums of each feature and each bin over the entries of one class."""
    sums = np.zeros((n_features, 2))
    bin_sums = np.zeros((numeric.shape[1], N_BINS, 2))
    for i in range(len(entries.rows)):
        row = entries.rows[i]
        g = entries.sums[i, 0]
        h = entries.sums[i, 1]
        at = np.int64(row)
        while at != NOWHERE:
            for slot in range(feature_ids.shape[1]):
                feature = feature_ids[at, slot]
                if 0 <= feature < n_features:
                    sums[feature, 0] += g
                    sums[feature, 1] += h
            at = next_row(feature_ids, at)
        for column in range(numeric.shape[1]):
            bin_sums[column, numeric[row, column], 0] += g
            bin_sums[column, numeric[row, column], 1] += h
    return FeatureSums(sums, bin_sums)


@kernel
def newton_step(
    found: FeatureSums,
    scales: npt.NDArray[np.float64],
    bin_values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float32],
    numeric_weights: npt.NDArray[np.float32],
    ridge: float,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The diagonal Newton step (G_f - ridge w_f) / (H_f + ridge) of each feature f, for one class.

    Numeric columns are such features too; their steps come second. scales: (2,) of the sums.
    """
    sums, bin_sums = found
    inverse_g = 1.0 / scales[0]
    inverse_h = 1.0 / scales[1]
    step = np.empty(len(sums), np.float32)
    for f in range(len(sums)):
        step[f] = (sums[f, 0] * inverse_g - ridge * weights[f]) / (sums[f, 1] * inverse_h + ridge)
    numeric_step = np.empty(len(bin_sums), np.float32)
    for column in range(len(bin_sums)):
        g_sum = 0.0
        h_sum = 0.0
        for b in range(N_BINS):
            value = bin_values[column, b]
            g_sum += value * bin_sums[column, b, 0] * inverse_g
            h_sum += value * value * bin_sums[column, b, 1] * inverse_h
        numeric_step[column] = (g_sum - ridge * numeric_weights[column]) / (h_sum + ridge)
    return step, numeric_step


@kernel
def _add_bound_along(
    g: npt.NDArray[np.float32],
    h: npt.NDArray[np.float32],
    along: npt.NDArray[np.float32],
    before: npt.NDArray[np.float32],
    label: int,
    bound: npt.NDArray[np.float64],
) -> None:
    """Add slopes and curvatures of one class's bound in the plane of two directions.

    along, before: (n_rows, n_labels), the scores of the two directions, of some rows. bound: (5,),
    slopes along both, and curvatures along the first, both and the second.
    """
    slope_a, slope_b = bound[0], bound[1]
    curve_aa, curve_ab, curve_bb = bound[2], bound[3], bound[4]
    for row in range(g.shape[0]):
        gradient = 0.0
        hessian = 0.0
        for c in range(g.shape[1]):
            gradient += g[row, c]
            hessian += h[row, c]
        a = along[row, label]
        b = before[row, label]
        slope_a += gradient * a
        slope_b += gradient * b
        curve_aa += hessian * a * a
        curve_ab += hessian * a * b
        curve_bb += hessian * b * b
    bound[0] = slope_a
    bound[1] = slope_b
    bound[2] = curve_aa
    bound[3] = curve_ab
    bound[4] = curve_bb


@dataclass(frozen=True)
class Direction:
    """Where each class's weights go, before a step length is found: arrays by class."""

    categorical: Sequence[npt.NDArray[np.float32]]  # shapes: (n_features,)
    numeric: Sequence[npt.NDArray[np.float32]]  # shapes: (n_numeric,)

    def by_feature(self) -> npt.NDArray[np.float32]:
        """What each feature adds along the direction. shape: (n_features, n_labels)"""
        found = np.empty((len(self.categorical[0]), len(self.categorical)), np.float32)
        return np.stack(self.categorical, axis=1, out=found)

    def by_bin(self, bin_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """What each bin adds along the direction. shape: (n_numeric, N_BINS, n_labels)"""
        found = bin_values[:, :, None] * np.stack(self.numeric).T[:, None, :]
        return found.astype(np.float32)


@dataclass(frozen=True)
class LinearProblem:
    """The bound of one round and where the weights stand."""

    data: Sequences
    bin_values: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS)
    gradient_of: GradientOfLabel
    lags: npt.NDArray[np.uint8]
    weights: LinearWeights
    previous: LinearWeights  # before the last linear round
    scores: npt.NDArray[np.float32]  # shape: (n_rows, n_labels), of the weights
    previous_scores: ScoresOfRows  # the same, of the previous weights


def bounds_along(
    problem: LinearProblem, direction: Direction, workers: Workers
) -> npt.NDArray[np.float64]:
    """The bound of each class in the plane of its direction and its last step, chunk by chunk.

    The scores of both directions are made for some chunks at a time. (n_chunks, n_labels, 5)
    """
    by_feature, by_bin = direction.by_feature(), direction.by_bin(problem.bin_values)
    data, n_labels = problem.data, by_feature.shape[1]
    bounds = np.zeros((len(data.chunks), n_labels, 5))
    for first in range(0, len(data.chunks), BLOCK_CHUNKS):
        chunks = data.chunks[first : first + BLOCK_CHUNKS]
        rows = data.rows_of((chunks[0][0], chunks[-1][1]))
        pieces = [data.rows_of(chunk) for chunk in chunks]
        pieces = [slice(piece.start - rows.start, piece.stop - rows.start) for piece in pieces]
        room = np.zeros((rows.stop - rows.start, n_labels), np.float32)
        along = _score(data, rows, by_feature, by_bin, workers, room)
        before = problem.scores[rows] - problem.previous_scores(rows)

        def add(k: int) -> None:
            g, h = problem.gradient_of(k, rows)  # noqa: B023
            for i, piece in enumerate(pieces, first):  # noqa: B023
                here = along[piece], before[piece]  # noqa: B023
                _add_bound_along(g[piece], h[piece], *here, k, bounds[i, k])

        workers.map(add, range(n_labels))
    return bounds


def solve_linear_round(
    problem: LinearProblem, ridge: float, trim: float, workers: Workers
) -> LinearWeights:
    """The weights after one linear round."""
    data, weights, bin_values = problem.data, problem.weights, problem.bin_values
    n_features, n_labels = weights.categorical.shape

    def precondition(k: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """The diagonal Newton step of class k."""
        g, h = problem.gradient_of(k, ALL_ROWS)
        draw = EntryDraw(trim, 1.0, np.uint64(0))
        entries = collect_in(workers.storage, g, h, problem.lags, n_labels, draw)
        found = sum_up_features(data.feature_ids, data.numeric, entries, n_features)
        own = weights.categorical[:, k].copy(), weights.numeric[:, k].copy()
        step: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
        step = newton_step(found, entries.scales, bin_values, *own, ridge)
        return step

    direction = Direction(*zip(*workers.map(precondition, range(n_labels)), strict=True))
    bounds = exact_total(bounds_along(problem, direction, workers))
    return best_weights(weights, problem.previous, direction, bounds, ridge, workers)


def best_weights(
    weights: LinearWeights,
    previous: LinearWeights,
    direction: Direction,
    bounds: npt.NDArray[np.float64],
    ridge: float,
    workers: Workers,
) -> LinearWeights:
    """The weights at the best combination, for each class, of its direction and its last step.

    bounds: (n_labels, 5), see `bounds_along`.
    """
    n_features, n_labels = weights.categorical.shape

    def best_step(k: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """The new weights of class k."""
        now = np.concatenate([weights.categorical[:, k], weights.numeric[:, k]]).astype(float)
        old = np.concatenate([previous.categorical[:, k], previous.numeric[:, k]])
        last = now - old
        ahead = np.concatenate([direction.categorical[k], direction.numeric[k]]).astype(float)
        slope_a, slope_b, curve_aa, curve_ab, curve_bb = bounds[k].tolist()
        # np.sum, not a BLAS dot: BLAS threads would fight with ours, and its sums vary with them
        slope_a -= ridge * float(np.sum(now * ahead))
        slope_b -= ridge * float(np.sum(now * last))
        curve_aa += ridge * float(np.sum(ahead * ahead))
        curve_ab += ridge * float(np.sum(ahead * last))
        curve_bb += ridge * float(np.sum(last * last))
        determinant = curve_aa * curve_bb - curve_ab**2
        if determinant > 1e-9 * curve_aa * curve_bb:
            a = (slope_a * curve_bb - slope_b * curve_ab) / determinant
            b = (slope_b * curve_aa - slope_a * curve_ab) / determinant
        else:
            a, b = (slope_a / curve_aa if curve_aa > 0.0 else 0.0), 0.0
        new = to_grid(now + a * ahead + b * last)
        return new[:n_features], new[n_features:]

    steps = workers.map(best_step, range(n_labels))
    return LinearWeights(
        np.ascontiguousarray(np.stack([s[0] for s in steps], axis=1)),
        np.ascontiguousarray(np.stack([s[1] for s in steps], axis=1)),
    )
