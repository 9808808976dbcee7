"""Boosting: round by round, residuals are turned into trees or linear weights and added up."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.annotators import ROUNDS_PER_ESTIMATE, estimated
from spacy_treecrf.engine.boosting.cached_scores import MAX_KEPT_BYTES, CachedScores
from spacy_treecrf.engine.boosting.conjugate import Direction, inner_product, polak_ribiere
from spacy_treecrf.engine.boosting.growing import ForestGrower
from spacy_treecrf.engine.boosting.linear import (
    LinearProblem,
    LinearWeights,
    solve_linear_round,
)
from spacy_treecrf.engine.boosting.potentials import Potentials, Update
from spacy_treecrf.engine.boosting.pseudo import compute_pseudo_residuals
from spacy_treecrf.engine.boosting.residuals import Bound, Residuals, compute_residuals
from spacy_treecrf.engine.boosting.rounds import (
    BestRound,
    Callback,
    HeldOut,
    Stopping,
    figures_of,
    refuse_forbidden_labels,
    run_rounds,
)
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import SpanLabels
from spacy_treecrf.engine.boosting.word_dropout import with_unknown_words
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.freed_memory import return_freed_memory
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.soft_labels import SoftLabels
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest, empty_forest, last_trees

# A step that lowered the likelihood is halved down to this share of it, and then dropped; a line
# search may double it so often.
LEAST_FACTOR = 2.0**-6
MAX_DOUBLINGS = 4


def make_chain(
    edges: npt.NDArray[np.float32],
    masks: Masks,
    order: int,
    beam: int | None = None,
) -> Chain:
    """The learned edges with the hard constraints (0 or -inf) added."""
    start, trans, end = masks
    return Chain(order, edges[-1] + start, edges[:-1] + trans, end, beam)


class RoundBooster(ABC):
    """Training of one model, round by round, wherever the rows are that it learns from."""

    def __init__(
        self, n_labels: int, masks: Masks, settings: Settings, potentials: Potentials
    ) -> None:
        self.settings = settings
        self.n_labels = n_labels
        self.masks = masks
        self.potentials = potentials
        self.spans: SpanLabels | None = None  # of the labels, for the F1 of held-out data
        self.n_annotated = 1  # rows
        self.best_so_far: BestRound | None = None  # of a training that goes on
        self._residuals_now: Residuals | None = None

    @abstractmethod
    def held_out_figures(self) -> HeldOut | None:
        """Figures of the held-out data now; None: there is none."""

    @abstractmethod
    def _residuals(self) -> Residuals:
        """Residuals for the next round, by the objective and the bound which that round uses."""

    @abstractmethod
    def _fit_linear(self, residuals: Residuals) -> LinearWeights:
        """The weights after a linear round."""

    @abstractmethod
    def _grow(self, residuals: Residuals, round_: int) -> Forest:
        """A tree for each label."""

    @abstractmethod
    def _move(self, back: Update | None, step: Update) -> None:
        """Bring all scores up to date with a step; `back` is one to be taken back before."""

    @abstractmethod
    def _forget_linear(self) -> None:
        """Drop what only linear rounds need."""

    def _tidy_up(self) -> None:
        """Make room for the residuals of a step, once it is known and those before it are gone."""

    @abstractmethod
    def _along_conjugate(
        self, residuals: Residuals, forest: Forest, edges: npt.NDArray[np.float64]
    ) -> Update:
        """A step along d_m = Delta_m + beta_m d_{m-1}; edges and forest are Delta_m."""

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @property
    def n_trees(self) -> int:
        return self.potentials.n_trees

    @property
    def learned(self) -> Potentials:
        return self.potentials

    @property
    def finished(self) -> bool:
        return False

    @property
    def log_likelihood(self) -> float:
        """Training log-likelihood per annotated row; the residuals behind it are kept."""
        return self._current().log_likelihood / self.n_annotated

    def boost(self, rounds: int, callback: Callback | None = None) -> Potentials:
        """Go on until `rounds` rounds are done in all; with held-out data, return the best ones."""
        settings = self.settings
        if not math.isfinite(self._current().log_likelihood):
            refuse_forbidden_labels(settings.constraints)
        warm_up = max(settings.linear_rounds, settings.pseudo_rounds)
        stopping = Stopping(settings.patience, settings.monitor, warm_up=warm_up)
        return run_rounds(self, rounds, stopping, callback, self.best_so_far)

    def learn_round(self) -> None:
        before = self._current().log_likelihood
        update = self._propose(self._current())
        # They take much memory, and are not those of these scores if this is interrupted.
        self._residuals_now = None
        self._tidy_up()
        self._residuals_now = self._take(update, before)
        if self.potentials.rounds >= self.settings.linear_rounds:
            self._forget_linear()

    def round_log_likelihood(self) -> float:
        return self.log_likelihood

    def _current(self) -> Residuals:
        if self._residuals_now is None:
            self._residuals_now = self._residuals()
        return self._residuals_now

    def _bound(self) -> Bound | None:
        """How the next round bounds hessians."""
        settings = self.settings
        newton = settings.step == "newton" or self.potentials.rounds < settings.linear_rounds
        return Bound(settings.gamma == "mixing", settings.max_step) if newton else None

    def _learns_edges(self, round_: int) -> bool:
        """Trees of the joint family learn the edges; there they belong to the linear part."""
        settings = self.settings
        joint = settings.family == "joint" and round_ >= settings.linear_rounds
        return settings.order > 0 and not joint

    def _chain(self) -> Chain:
        settings = self.settings
        return make_chain(self.potentials.edges, self.masks, settings.order, settings.beam)

    def _propose(self, residuals: Residuals) -> Update:
        """One round's step, not yet applied."""
        settings = self.settings
        round_ = self.potentials.rounds
        is_linear = round_ < settings.linear_rounds
        is_conjugate = settings.step == "conjugate" and not is_linear
        rate = 1.0 if is_linear or is_conjugate else settings.shrinkage
        edges = np.zeros((self.n_labels + 1, self.n_labels))
        if self._learns_edges(round_):
            edges = rate * residuals.edge_g / (residuals.edge_h + settings.ridge)
        if is_linear:
            return Update(to_grid(edges), empty_forest(), self._fit_linear(residuals))
        forest = self._grow(residuals, round_)
        if is_conjugate:
            return self._along_conjugate(residuals, forest, edges)
        return Update(to_grid(edges), forest.scaled(rate), None)

    def _take(self, update: Update, before: float) -> Residuals:
        """Apply a step, cut down until it raises the objective; returns the next residuals.

        before: the objective, which is the log-likelihood of all rows.
        """
        start = self.potentials
        applied: Update | None = None
        after: Residuals | None = None

        def move_to(factor: float) -> float:
            nonlocal applied, after
            after = None  # there is memory for one
            step = update if factor == 1.0 else start.scaled(update, factor)
            self._move(applied, step)
            applied = step
            self.potentials = start.after(step)
            after = self._residuals()
            return after.log_likelihood

        pseudo = self.settings.pseudo_rounds
        comparable = (start.rounds < pseudo) == (start.rounds + 1 < pseudo)
        now, factor = move_to(1.0), 1.0
        # Published gradient steps correct themselves in later rounds; the others never fall.
        if update.linear or self.settings.step == "newton" or self.settings.line_search:
            while comparable and now < before and factor > 0.0:
                factor = factor / 2.0 if factor > LEAST_FACTOR else 0.0
                now = move_to(factor)
        if comparable and self.settings.line_search and factor == 1.0:
            for _ in range(MAX_DOUBLINGS):
                further = move_to(2.0 * factor)
                if further <= now:
                    move_to(factor)
                    break
                factor *= 2.0
                now = further
        assert after is not None
        return after


class Booster(RoundBooster):
    """Training on rows that are here: the data and their cached scores."""

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        n_labels: int,
        masks: Masks,
        settings: Settings,
        workers: Workers,
        potentials: Potentials | None = None,
        held_out: Sequences | None = None,
    ) -> None:
        data = data.with_weight()
        if settings.word_dropout:
            share, seed = settings.word_dropout, settings.seed
            data = with_unknown_words(data, columns.counts, share, seed, workers.storage)
        if potentials is None:
            potentials = Potentials.zeros(n_labels, len(columns.counts), len(columns.bin_values))
        super().__init__(n_labels, masks, settings, potentials)
        self.columns = columns
        self.workers = workers
        context_order = settings.context_order
        of_annotators = data.soft is not None and data.soft.prior is not None
        distill = settings.soft_labels == "distill" and not of_annotators
        self.annotated = Annotated(data, n_labels, settings.order, context_order > 0, distill)
        self.train = CachedScores(data, columns, context_order, potentials, workers)
        self.held_out: CachedScores | None = None
        if held_out:
            self.held_out = CachedScores(held_out, columns, context_order, potentials, workers)
        self.grower = ForestGrower(self.train, self.annotated, settings)
        self.n_annotated = data.n_annotated
        # Of the last conjugate step: the rounds then done, and its trees' values on these rows.
        self._last_gradient: tuple[int, npt.NDArray[np.float32]] | None = None

    def boost(self, rounds: int, callback: Callback | None = None) -> Potentials:
        learned = super().boost(rounds, callback)
        # As large as the scores, and made anew if there are further rounds: between steps of spaCy
        # a model is evaluated and stored, which takes memory, too.
        if self._is_large:
            self._residuals_now = None
            return_freed_memory()
        return learned

    def _tidy_up(self) -> None:
        if self._is_large:
            return_freed_memory()  # what each thread took for the trees or weights of its labels

    @property
    def _is_large(self) -> bool:
        return self.train.scores.nbytes > MAX_KEPT_BYTES

    def held_out_figures(self) -> HeldOut | None:
        if self.held_out is None:
            return None
        cached, predictor = self.held_out, self.settings.predictor
        return figures_of(
            cached.scores, cached.data, self._chain(), predictor, self.workers, self.spans
        )

    def learn_round(self) -> None:
        super().learn_round()
        soft = self.annotated.data.soft
        if soft is not None and soft.prior is not None and self.rounds % ROUNDS_PER_ESTIMATE == 0:
            self.estimate_confusions(soft)

    def estimate_confusions(self, soft: SoftLabels) -> None:
        """Estimate the confusions of annotators anew, from what the model now expects."""
        data, residuals = self.annotated.data, self._current()
        clamped = self.annotated.clamped_row
        expected = np.zeros((data.n_rows, self.n_labels), np.float32)
        if len(residuals.clamped):  # there is none of the pseudo-likelihood
            expected[clamped >= 0] = residuals.clamped.sum(axis=1)
            self._residuals_now = None
            self.annotated = self.annotated.with_soft(estimated(soft, expected, data.weights))
            self.grower.annotated = self.annotated

    @property
    def soft(self) -> SoftLabels | None:
        """The soft labels as they are now: confusions of annotators are learned."""
        return self.annotated.data.soft

    def _residuals(self) -> Residuals:
        round_, now = self.potentials.rounds, (self.annotated, self.train.scores, self._chain())
        if round_ < self.settings.pseudo_rounds:
            return compute_pseudo_residuals(*now, self._bound(), self.workers)
        return compute_residuals(*now, self._bound(), self.workers, self._learns_edges(round_))

    def _grow(self, residuals: Residuals, round_: int) -> Forest:
        return self.grower.grow(residuals, round_)

    def _move(self, back: Update | None, step: Update) -> None:
        for cached in filter(None, (self.train, self.held_out)):
            if back:
                cached.revert(back)
            cached.apply(step)

    def _forget_linear(self) -> None:
        for cached in filter(None, (self.train, self.held_out)):
            cached.forget_linear()

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
            residuals.of_label,
            train.lags,
            self.potentials.linear,
            self.potentials.previous_linear,
            train.linear,
            train.previous_linear,
        )
        return solve_linear_round(problem, self.settings.ridge, self.settings.trim, self.workers)
