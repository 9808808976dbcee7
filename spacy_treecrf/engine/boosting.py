"""Boosting: round by round, residuals are turned into trees or linear weights and added up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.beam import beam_marginals
from spacy_treecrf.engine.cached_scores import CachedScores
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.conjugate import Direction, inner_product, polak_ribiere
from spacy_treecrf.engine.decoding import beam_viterbi, marginal_argmax, viterbi_kernel
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.forest import Forest, empty_forest, last_trees
from spacy_treecrf.engine.growing import ForestGrower
from spacy_treecrf.engine.linear import (
    LinearProblem,
    LinearWeights,
    solve_linear_round,
)
from spacy_treecrf.engine.potentials import Potentials, Update
from spacy_treecrf.engine.pseudo import compute_pseudo_residuals
from spacy_treecrf.engine.residuals import (
    Annotated,
    Bound,
    Residuals,
    allowed_labels,
    compute_residuals,
)
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers

# A step that lowered the likelihood is halved down to this share of it, and then dropped; a line
# search may double it so often.
LEAST_FACTOR = 2.0**-6
MAX_DOUBLINGS = 4


@dataclass(frozen=True)
class RoundInfo:
    """What a callback learns after each round."""

    round: int  # from 1
    log_likelihood: float  # of the training data, per annotated row
    seconds: float  # since boosting began
    trees: int  # in the whole model
    held_out_log_likelihood: float | None = None  # per annotated row
    held_out_accuracy: float | None = None


Callback = Callable[[RoundInfo], None]


def make_chain(
    edges: npt.NDArray[np.float32],
    masks: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]],
    order: int,
    beam: int | None = None,
) -> Chain:
    """The learned edges with the hard constraints (0 or -inf) added."""
    start, trans, end = masks
    return Chain(order, edges[-1] + start, edges[:-1] + trans, end, beam)


class Booster:
    """Training of one model: the data, its cached scores and the potentials learned so far."""

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        n_labels: int,
        masks: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]],
        settings: Settings,
        workers: Workers,
        potentials: Potentials | None = None,
        held_out: Sequences | None = None,
    ) -> None:
        weighty = np.add.reduceat(data.weights, data.offsets[:-1]) > 0
        if not weighty.any():
            raise ValueError("treecrf: every sequence has weight 0; give at least one a weight")
        if not weighty.all():
            data = data.subset(np.flatnonzero(weighty))
        self.columns = columns
        self.settings = settings
        self.workers = workers
        self.n_labels = n_labels
        self.masks = masks
        context_order = settings.context_order
        self.annotated = Annotated(data, n_labels, settings.order, context_order > 0)
        if potentials is None:
            potentials = Potentials.zeros(n_labels, len(columns.counts), len(columns.bin_values))
        self.potentials = potentials
        self.train = CachedScores(data, columns, context_order, potentials, workers)
        self.held_out: CachedScores | None = None
        if held_out:
            self.held_out = CachedScores(held_out, columns, context_order, potentials, workers)
        self.grower = ForestGrower(self.train, self.annotated, settings)
        self.n_annotated = max(1, int((data.labels != UNKNOWN_LABEL).sum()))
        self._residuals_now: Residuals | None = None
        # Of the last conjugate step: the rounds then done, and its trees' values on these rows.
        self._last_gradient: tuple[int, npt.NDArray[np.float32]] | None = None

    @property
    def log_likelihood(self) -> float:
        """Of the training data now, per annotated row; what the next round needs is kept."""
        return self._current().log_likelihood / self.n_annotated

    def boost(self, rounds: int, callback: Callback | None = None) -> Potentials:
        """Go on until `rounds` rounds are done in all; with held-out data, return the best ones."""
        began = time.perf_counter()
        patience = self.settings.patience
        best = self.potentials
        best_value = self._held_out_value(self._info(math.nan, began)) if self.held_out else 0.0
        residuals = self._current()
        if not math.isfinite(residuals.log_likelihood):
            raise ValueError(
                f"treecrf: constraints={self.settings.constraints!r} forbid labels of the training "
                "data; correct the labels, or use constraints='observed' or 'none'"
            )
        while self.potentials.rounds < rounds:
            update = self._propose(residuals)
            self._residuals_now = None  # not those of these scores if this is interrupted
            residuals = self._residuals_now = self._take(update, residuals)
            info = self._info(residuals.log_likelihood / self.n_annotated, began)
            if callback:
                callback(info)
            if self.held_out:
                value = self._held_out_value(info)
                if value > best_value:
                    best, best_value = self.potentials, value
                elif patience and self.potentials.rounds - best.rounds >= patience:
                    break
        return best if self.held_out else self.potentials

    def _current(self) -> Residuals:
        if self._residuals_now is None:
            self._residuals_now = self._residuals()
        return self._residuals_now

    def _residuals(self) -> Residuals:
        """Residuals for the next round, by the objective and the bound which that round uses."""
        settings, done = self.settings, self.potentials.rounds
        newton = settings.step == "newton" or done < settings.linear_rounds
        bound = Bound(settings.gamma == "mixing", settings.max_step) if newton else None
        compute = compute_pseudo_residuals if done < settings.pseudo_rounds else compute_residuals
        chain = make_chain(self.potentials.edges, self.masks, settings.order, settings.beam)
        return compute(self.annotated, self.train.scores, chain, bound, self.workers)

    def _propose(self, residuals: Residuals) -> Update:
        """One round's step, not yet applied."""
        settings = self.settings
        round_ = self.potentials.rounds
        is_linear = round_ < settings.linear_rounds
        is_conjugate = settings.step == "conjugate" and not is_linear
        rate = 1.0 if is_linear or is_conjugate else settings.shrinkage
        edges = np.zeros((self.n_labels + 1, self.n_labels))
        # In the joint family trees learn the edges; they belong to the linear part there.
        if settings.order and (settings.family == "separate" or is_linear):
            edges = rate * residuals.edge_g / (residuals.edge_h + settings.ridge)
        if is_linear:
            return Update(to_grid(edges), empty_forest(), self._fit_linear(residuals))
        forest = self.grower.grow(residuals, round_)
        if is_conjugate:
            return self._along_conjugate(residuals, forest, edges)
        return Update(to_grid(edges), forest.scaled(rate), None)

    def _along_conjugate(
        self, residuals: Residuals, forest: Forest, edges: npt.NDArray[np.float64]
    ) -> Update:
        """A step along d_m = Delta_m + beta_m d_{m-1}; edges and forest are Delta_m."""
        now, rate = self.potentials, self.settings.shrinkage
        last = now.direction or Direction.start(now.n_trees, self.n_labels)
        gradient = self.train.of_trees(forest)
        beta = 0.0
        # The gradient of the pseudo-likelihood was that of another function.
        if last.n_active and now.rounds != self.settings.pseudo_rounds:
            if self._last_gradient is None or self._last_gradient[0] != now.rounds:
                trees = last_trees(now.forests, self.n_labels)
                self._last_gradient = now.rounds, self.train.of_trees(trees)
            before = self._last_gradient[1]

            def inner(
                f: npt.NDArray[np.float32],
                other: npt.NDArray[np.float32],
                f_edges: npt.NDArray[np.float64],
                other_edges: npt.NDArray[np.float64],
            ) -> float:
                rows = residuals.edge_h
                return inner_product(self.train.data, f, other, f_edges, other_edges, rows)

            beta = polak_ribiere(
                inner(gradient, gradient, edges, edges),
                inner(gradient, before, edges, last.edge_gradient),
                inner(before, before, last.edge_gradient, last.edge_gradient),
            )
        self._last_gradient = now.rounds + 1, gradient
        direction = last.turned(beta, forest.n_trees, edges)
        return now.along(direction, forest, to_grid(rate * direction.edges), rate)

    def _fit_linear(self, residuals: Residuals) -> LinearWeights:
        train = self.train
        problem = LinearProblem(
            train.data,
            self.columns.bin_values,
            residuals.g,
            residuals.h,
            train.lags,
            self.potentials.linear,
            self.potentials.previous_linear,
            train.linear - train.previous_linear,
        )
        return solve_linear_round(problem, self.settings.ridge, self.settings.trim, self.workers)

    def _take(self, update: Update, before: Residuals) -> Residuals:
        """Apply a step, cut down until it raises the objective; returns the next residuals."""
        start = self.potentials
        applied: Update | None = None

        def move_to(factor: float) -> Residuals:
            nonlocal applied
            step = update if factor == 1.0 else start.scaled(update, factor)
            for cached in filter(None, (self.train, self.held_out)):
                if applied:
                    cached.revert(applied)
                cached.apply(step)
            applied = step
            self.potentials = start.after(step)
            return self._residuals()

        pseudo = self.settings.pseudo_rounds
        comparable = (start.rounds < pseudo) == (start.rounds + 1 < pseudo)
        after = move_to(1.0)
        if not comparable:
            return after
        factor = 1.0
        # Published gradient steps correct themselves in later rounds; the others never fall.
        if update.linear or self.settings.step == "newton" or self.settings.line_search:
            while after.log_likelihood < before.log_likelihood and factor > 0.0:
                factor = factor / 2.0 if factor > LEAST_FACTOR else 0.0
                after = move_to(factor)
        if self.settings.line_search and factor == 1.0:
            for _ in range(MAX_DOUBLINGS):
                further = move_to(2.0 * factor)
                if further.log_likelihood <= after.log_likelihood:
                    after = move_to(factor)
                    break
                factor *= 2.0
                after = further
        return after

    def _info(self, log_likelihood: float, began: float) -> RoundInfo:
        info = RoundInfo(
            self.potentials.rounds,
            log_likelihood,
            time.perf_counter() - began,
            self.potentials.n_trees,
        )
        if self.held_out:
            held_out, accuracy = self._evaluate(self.held_out)
            info = replace(info, held_out_log_likelihood=held_out, held_out_accuracy=accuracy)
        return info

    def _held_out_value(self, info: RoundInfo) -> float:
        by_accuracy = self.settings.monitor == "accuracy"
        value = info.held_out_accuracy if by_accuracy else info.held_out_log_likelihood
        assert value is not None
        return value

    def _evaluate(self, cached: CachedScores) -> tuple[float, float]:
        """Log-likelihood per annotated row, and accuracy on annotated rows."""
        data = cached.data
        settings = self.settings
        chain = make_chain(self.potentials.edges, self.masks, settings.order, settings.beam)
        allowed = allowed_labels(data.labels, self.n_labels)
        log_p = chains.log_probability_of(cached.scores, data.offsets, chain, allowed)
        # Hard constraints may forbid a held-out annotation; no round can change that.
        log_p[np.isneginf(log_p)] = 0.0
        labels = predict_labels(cached.scores, data, chain, settings.predictor, self.workers)
        annotated = data.labels != UNKNOWN_LABEL
        n = max(1, int(annotated.sum()))
        return float(log_p.sum()) / n, float((labels == data.labels)[annotated].sum()) / n


def predict_labels(
    scores: npt.NDArray[np.float32],
    data: Sequences,
    chain: Chain,
    predictor: str,
    workers: Workers,
) -> npt.NDArray[np.int32]:
    """The best label sequence, or the best label of each position. shape: (n_rows,)"""
    if predictor == "marginal":
        return marginal_argmax(predict_marginals(scores, data, chain, workers))
    labels = np.zeros(data.n_rows, np.int32)
    best = np.empty(data.n_sequences)
    if chain.pruned and scores.shape[1] == 1:
        workers.map(
            lambda chunk: beam_viterbi(scores, data.offsets, chunk, chain, labels, best),
            data.chunks,
        )
        return labels
    workers.map(
        lambda chunk: viterbi_kernel(
            scores,
            data.offsets,
            *chunk,
            chain.order,
            chain.start,
            chain.trans,
            chain.end,
            labels,
            best,
        ),
        data.chunks,
    )
    return labels


def predict_marginals(
    scores: npt.NDArray[np.float32], data: Sequences, chain: Chain, workers: Workers
) -> npt.NDArray[np.float64]:
    """P(y_t = k). shape: (n_rows, n_labels)"""
    nodes = np.empty((data.n_rows, chain.n_labels))
    log_z = np.empty(data.n_sequences)
    if chain.pruned and scores.shape[1] == 1:
        workers.map(
            lambda chunk: beam_marginals(scores, data.offsets, chunk, chain, nodes), data.chunks
        )
        return nodes
    workers.map(
        lambda chunk: chains.node_marginals_kernel(
            scores,
            data.offsets,
            *chunk,
            chain.order,
            chain.start,
            chain.trans,
            chain.end,
            chains.EVERYTHING_ALLOWED,
            nodes,
            log_z,
        ),
        data.chunks,
    )
    return nodes
