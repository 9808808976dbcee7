"""Training of a code column by column: iid, i-SECOC and c-SECOC, and the chain that joins them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.bits import (
    bit_probabilities,
    boosted_bit,
    perceptron_bit,
    with_cascade,
)
from spacy_treecrf.engine.boosting import Callback, RoundInfo, predict_labels
from spacy_treecrf.engine.cascade import WINDOW, cascade_columns
from spacy_treecrf.engine.chain_fitting import fit_label_chain
from spacy_treecrf.engine.constraints import first_forbidden
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.potentials import Potentials, Scorer, mean_potentials
from spacy_treecrf.engine.residuals import allowed_labels
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.splitting import NUMERIC
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.codes import label_scores
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.secoc import SECOC

Floats = npt.NDArray[np.float32]

# Columns between two looks at the held-out data, and at Ctrl-C.
BATCH = 8
_ALONE = Workers(1)


@dataclass(frozen=True)
class Fold:
    """What one set of models learns from, and what they predict for later columns and the chain.

    The two have no row in common if columns are cross-fitted; else both are all of the data.
    """

    learned: Sequences
    learned_rows: npt.NDArray[np.int64]  # in the training data
    predicted: Sequences
    predicted_rows: npt.NDArray[np.int64]


class ColumnsTrainer(Trainer):
    """A round learns one column.

    What later columns and the chain over labels see of a column are predictions for sequences that
    were not learned from (cross-fitted), or those for the training data itself ("training").
    """

    def __init__(
        self, model: SECOC, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        weighty = np.add.reduceat(data.weights, data.offsets[:-1]) > 0
        if not weighty.any():
            raise ValueError("treecrf: every sequence has weight 0; give at least one a weight")
        if not weighty.all():
            data = data.subset(np.flatnonzero(weighty))
        if first_forbidden(data.labels, data.offsets, model.masks) is not None:
            raise ValueError(
                f"treecrf: constraints={model.settings.constraints!r} forbid labels of the "
                "training data; correct the labels, or use constraints='observed' or 'none'"
            )
        self.data = data
        self.n_annotated = max(1, int((data.labels != UNKNOWN_LABEL).sum()))
        self._model = model
        self._workers = workers
        self._held_out = held_out
        every = np.arange(data.n_rows)
        self._folds = self._cut() if self._crosses else [Fold(data, every, data, every)]
        # P(bit = 1) as later columns and the chain see it; of columns learned elsewhere, plain
        self._seen = np.zeros((data.n_rows, model.n_bits), np.float32)
        self._seen[:, : model.rounds] = model.bit_probabilities(data, workers)
        self._fitted = True

    @property
    def model(self) -> SECOC:
        """With the chain over labels fitted to the columns so far."""
        if not self._fitted:
            self._model = self._with_chain(self._model)
            self._fitted = True
        return self._model

    @property
    def log_likelihood(self) -> float:
        model = self.model
        scores = model.scores_of_bits(self._seen[:, : model.rounds])
        return _log_likelihood(scores, self.data, model) / self.n_annotated

    def train(self, rounds: int, callback: Callback | None = None) -> SECOC:
        began = time.perf_counter()
        goal = min(rounds, self._model.n_bits)
        best, best_value = self._model, -np.inf
        patience = self._model.settings.patience
        one_by_one = self._model.settings.history != 0
        while self._model.rounds < goal:
            done = self._model.rounds
            columns = range(done, min(goal, done + (1 if one_by_one else BATCH)))
            bits = self._learn(columns)
            self._model = _with_bits(self._model, bits)
            self._fitted = False
            info = RoundInfo(
                self._model.rounds,
                float("nan"),
                time.perf_counter() - began,
                self._model.potentials.n_trees,
            )
            if self._held_out is not None and (not one_by_one or self._model.rounds % BATCH == 0):
                info = self._judged(info)
                assert info.held_out_accuracy is not None
                if info.held_out_accuracy > best_value:
                    best, best_value = self.model, info.held_out_accuracy
                elif patience and self._model.rounds - best.rounds >= patience * BATCH:
                    return best
            if callback:
                callback(info)
        return best if best_value > -np.inf else self.model

    @property
    def _crosses(self) -> bool:
        settings = self._model.settings
        by_cascade = settings.history != 0 and settings.cascade == "cross_fitted"
        wanted = by_cascade or (settings.decoding == "joint" and settings.history == 0)
        return wanted and self.data.n_sequences > 1

    def _cut(self) -> list[Fold]:
        """Folds of about the same number of sequences, drawn by the seed."""
        settings, data = self._model.settings, self.data
        n = min(settings.folds, data.n_sequences)
        keys = [mix(np.uint64(settings.seed), np.uint64(s)) for s in range(data.n_sequences)]
        fold_of = np.empty(data.n_sequences, np.int64)
        fold_of[np.argsort(np.array(keys, np.uint64), kind="stable")] = (
            np.arange(data.n_sequences) % n
        )
        of_row = np.repeat(fold_of, np.diff(data.offsets))
        return [
            Fold(
                data.subset(np.flatnonzero(fold_of != f)),
                np.flatnonzero(of_row != f),
                data.subset(np.flatnonzero(fold_of == f)),
                np.flatnonzero(of_row == f),
            )
            for f in range(n)
        ]

    def _learn(self, columns: Sequence[int]) -> list[tuple[int, Potentials]]:
        """Columns that do not see each other; what they predict is noted in `_seen`.

        A cross-fitted column is the mean of what its folds have learned. One that is learned from
        all rows instead would tell later columns other things than those they have learned from.
        """
        tasks = [(j, fold) for j in columns for fold in self._folds]
        learned: dict[int, list[Potentials]] = {j: [] for j in columns}
        found = self._workers.map(self._learn_one, tasks)
        for (j, fold), (bit, seen) in zip(tasks, found, strict=True):
            learned[j].append(bit)
            self._seen[fold.predicted_rows, j] = seen
        return [(j, mean_potentials(bits)) for j, bits in learned.items()]

    def _learn_one(self, task: tuple[int, Fold]) -> tuple[Potentials, Floats]:
        """A column of a fold, and P(bit = 1) in the rows that it predicts."""
        j, fold = task
        model = self._model
        settings, base = model.settings, model.settings.base
        data, others = fold.learned, fold.predicted
        n_history = settings.n_history(j)
        columns = with_cascade(model.columns, n_history)
        if n_history:
            cascade = cascade_columns(self._seen[:, j - n_history : j], self.data.offsets)
            data = _widened(data, cascade[fold.learned_rows])
            others = _widened(others, cascade[fold.predicted_rows])
        bits = model.code[np.maximum(data.labels, 0), j].astype(np.int32)
        bits[data.labels == UNKNOWN_LABEL] = UNKNOWN_LABEL
        data = replace(data, labels=bits)
        seed = int(mix(np.uint64(settings.seed), np.uint64(j))) % 2**63
        if isinstance(base, Settings):
            bit = boosted_bit(data, columns, replace(base, seed=seed))
        else:
            assert base.rounds is not None
            bit = perceptron_bit(data, columns, base.rounds, base.order, seed)
        context_order = base.context_order if isinstance(base, Settings) else 0
        scorer = Scorer(bit, columns.bin_values, context_order)
        return bit, bit_probabilities(scorer, bit.edges, base.order, others, _ALONE)

    def _with_chain(self, model: SECOC) -> SECOC:
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

    def _judged(self, info: RoundInfo) -> RoundInfo:
        data, model = self._held_out, self.model
        assert data is not None
        scores = model.scores(data, self._workers)
        labels = predict_labels(scores, data, model.chain, model.settings.predictor, self._workers)
        known = data.labels != UNKNOWN_LABEL
        n = max(1, int(known.sum()))
        return replace(
            info,
            held_out_log_likelihood=_log_likelihood(scores, data, model) / n,
            held_out_accuracy=float((labels == data.labels)[known].sum()) / n,
        )


CHAIN_RIDGE = 1.0


def _widened(data: Sequences, numeric: npt.NDArray[np.uint8]) -> Sequences:
    return replace(data, numeric=np.concatenate([data.numeric, numeric], axis=1))


def _with_bits(model: SECOC, bits: list[tuple[int, Potentials]]) -> SECOC:
    """The model with further columns, in their order."""
    potentials = model.potentials
    n_own = len(model.columns.numeric_names)
    categorical = potentials.linear.categorical.copy()
    numeric = potentials.linear.numeric.copy()
    edges = model.bit_edges.copy()
    forests = []
    for j, bit in bits:
        two = slice(2 * j, 2 * j + 2)
        # Cascade columns are numbered by their bit, here as well as in every other column.
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


def _log_likelihood(scores: Floats, data: Sequences, model: SECOC) -> float:
    allowed = allowed_labels(data.labels, len(model.labels))
    log_p = chains.log_probability_of(scores, data.offsets, model.chain, allowed)
    log_p[np.isneginf(log_p)] = 0.0  # forbidden by constraints: no column can change that
    return float(log_p.sum())
