"""Training of an output code bit by bit (iid, i-SECOC, c-SECOC), and of the chain over labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials, mean_potentials
from spacy_treecrf.engine.boosting.rounds import (
    Callback,
    HeldOut,
    Stopping,
    figures_of,
    possible_log_likelihood,
    refuse_forbidden_labels,
    run_rounds,
)
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.engine.chain.constraints import first_forbidden
from spacy_treecrf.engine.codes.cascade import WINDOW, cascade_columns
from spacy_treecrf.engine.codes.chain_fitting import fit_label_chain
from spacy_treecrf.engine.codes.code_words import label_scores
from spacy_treecrf.engine.codes.cross_fitting import CrossFitted
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import NUMERIC
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.secoc.bit_learner import BitLearner, LearnedBit
from spacy_treecrf.models.secoc.model import SECOCModel

# Bits that are learned between two looks at the held-out data, and at Ctrl-C.
BATCH = 8
# Runs a learner for bits and folds; what it learns comes in their order.
RunAll = Callable[[BitLearner, Sequence[tuple[int, int]]], Iterator[LearnedBit]]


class BitsTrainer(Trainer):
    """A trainer that learns one bit of the code in each round.

    Later bits and the chain over labels see the predictions of earlier bits: for sequences that
    these have not learned from (cross-fitted), or for the training data itself ("training").
    """

    def __init__(
        self, model: SECOCModel, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        data = data.with_weight()
        if first_forbidden(data.labels, data.offsets, model.masks) is not None:
            refuse_forbidden_labels(model.settings.constraints)
        self.data = data
        self.n_annotated = data.n_annotated
        self._model = model
        self._workers = workers
        self._held_out = held_out
        settings = model.settings
        n_folds = min(settings.folds, data.n_sequences) if self._crosses else 1
        self._learner = BitLearner(settings, model.code, model.columns, data, n_folds)
        self._from_elsewhere: Iterator[LearnedBit] | None = None
        # P(bit = 1) as later bits and the chain see it. Bits that were learned before from other
        # data are not cross-fitted here: the finished model predicts them.
        self._seen = np.zeros((data.n_rows, model.n_bits), np.float32)
        known = model.cross_fitted
        self._seen[:, : model.rounds] = (
            known.probabilities
            if known is not None and known.belongs_to(data)
            else model.bit_probabilities(data, workers)
        )
        self._fitted = True
        self._goal = model.n_bits

    def learn_elsewhere(self, run_all: RunAll) -> None:
        """Let all bits that are left, none of which sees another, be learned by `run_all`."""
        assert self._model.settings.history == 0
        left = range(self._model.rounds, self._model.n_bits)
        self._from_elsewhere = run_all(self._learner, self._tasks(left))

    @property
    def model(self) -> SECOCModel:
        """The model so far, with the chain over labels fitted to the bits that are learned."""
        if not self._fitted:
            self._model = self._with_cross_fitted(self._with_chain(self._model))
            self._fitted = True
        return self._model

    @property
    def rounds(self) -> int:
        return self._model.rounds

    @property
    def n_trees(self) -> int:
        return self._model.potentials.n_trees

    @property
    def learned(self) -> SECOCModel:
        return self.model

    @property
    def finished(self) -> bool:
        return self._model.rounds == self._model.n_bits

    @property
    def log_likelihood(self) -> float:
        model = self.model
        scores = model.scores_of_bits(self._seen[:, : model.rounds])
        return possible_log_likelihood(scores, self.data, model.chain) / self.n_annotated

    def _boost(self, rounds: int, callback: Callback | None) -> SECOCModel:
        self._goal = rounds
        patience = self._model.settings.patience * BATCH
        again = self.rounds > 0
        stopping = Stopping(patience, "auto", otherwise="accuracy", from_start=again)
        return run_rounds(self, rounds, stopping, callback)

    def learn_round(self) -> None:
        done = self._model.rounds
        at_once = BATCH if self._model.settings.history == 0 else 1
        columns = range(done, min(self._goal, self._model.n_bits, done + at_once))
        self._model = _with_bits(self._model, self._learn(columns))
        self._fitted = False

    def round_log_likelihood(self) -> float:
        return math.nan

    def held_out_figures(self) -> HeldOut | None:
        one_by_one = self._model.settings.history != 0
        if self._held_out is None or (one_by_one and self._model.rounds % BATCH):
            return None
        data, model = self._held_out, self.model
        scores = model.scores(data, self._workers)
        spans = span_labels(model.labels)
        predictor = model.settings.predictor
        return figures_of(scores, data, model.chain, predictor, self._workers, spans)

    @property
    def _crosses(self) -> bool:
        settings = self._model.settings
        by_cascade = settings.history != 0 and settings.cascade == "cross_fitted"
        wanted = by_cascade or (settings.decoding == "joint" and settings.history == 0)
        return wanted and self.data.n_sequences > 1

    def _learn(self, numbers: Sequence[int]) -> list[tuple[int, Potentials]]:
        """Learn bits that do not see each other, and note their predictions in `_seen`.

        A cross-fitted bit is the mean of what its folds have learned. A bit learned from all rows
        would predict other values than those that later bits have learned from.
        """
        tasks, folds = self._tasks(numbers), self._learner.folds
        learned: dict[int, list[Potentials]] = {j: [] for j in numbers}
        if self._from_elsewhere is not None:
            found = list(islice(self._from_elsewhere, len(tasks)))
        else:
            found = self._workers.map(self._learn_one, tasks)
        for (j, fold), (bit, seen) in zip(tasks, found, strict=True):
            learned[j].append(bit)
            self._seen[folds[fold].predicted_rows, j] = seen
        return [(j, mean_potentials(bits)) for j, bits in learned.items()]

    def _tasks(self, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Bits and the folds that each is learned on."""
        return [(j, fold) for j in numbers for fold in range(self._learner.n_folds)]

    def _learn_one(self, task: tuple[int, int]) -> LearnedBit:
        j, fold = task
        n_history = self._model.settings.n_history(j)
        cascade = None
        if n_history:
            cascade = cascade_columns(self._seen[:, j - n_history : j], self.data.offsets)
        return self._learner(j, fold, cascade)

    def _with_chain(self, model: SECOCModel) -> SECOCModel:
        settings = model.settings
        n = model.rounds
        if n == 0:
            return model
        scores = label_scores(self._seen[:, :n], model.code[:, :n], model.distance)
        chain = fit_label_chain(
            scores,
            self.data,
            model.masks,
            settings.order,
            CHAIN_RIDGE,
            self._workers,
            settings.training_beam(len(model.labels)),
        )
        return replace(model, label_chain=chain)

    def _with_cross_fitted(self, model: SECOCModel) -> SECOCModel:
        """The model with what it takes to go on, if bits are left to learn."""
        kept = None
        if self._crosses and not self.finished:
            kept = CrossFitted.of(self.data, self._seen[:, : model.rounds])
        return replace(model, cross_fitted=kept)


CHAIN_RIDGE = 1.0


def _with_bits(model: SECOCModel, bits: list[tuple[int, Potentials]]) -> SECOCModel:
    """The model with further bits, in their order."""
    potentials = model.potentials
    n_own = len(model.columns.numeric_names)
    categorical = potentials.linear.categorical.copy()
    numeric = potentials.linear.numeric.copy()
    edges = model.bit_edges.copy()
    forests = []
    for j, bit in bits:
        two = slice(2 * j, 2 * j + 2)
        # The numeric columns of the cascade have the numbers of their bits in all potentials.
        first = WINDOW * (j - model.settings.n_history(j))
        categorical[:, two] = bit.linear.categorical
        numeric[:n_own, two] = bit.linear.numeric[:n_own]
        n_cascade = len(bit.linear.numeric) - n_own
        numeric[n_own + first : n_own + first + n_cascade, two] = bit.linear.numeric[n_own:]
        forests.append(_renumbered(bit.forest, j, n_own, first))
        edges[j] = bit.edges
    return replace(
        model,
        bit_edges=edges,
        potentials=replace(
            potentials,
            linear=LinearWeights(categorical, numeric),
            forests=(*potentials.forests, *forests),
            rounds=potentials.rounds + len(bits),
        ),
    )


def _renumbered(forest: Forest, bit: int, n_own: int, first: int) -> Forest:
    cascade = (forest.kind == NUMERIC) & (forest.feature >= n_own)
    return replace(
        forest,
        tree_class=2 * bit + forest.tree_class,
        tree_round=np.full(forest.n_trees, bit, np.int32),
        feature=np.where(cascade, forest.feature + first, forest.feature).astype(np.int32),
    )
