"""The averaged or voted perceptron (Collins 2002): a fast baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearScorer, LinearWeights
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
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain, StepPotentials
from spacy_treecrf.engine.chain.constraints import Masks, first_forbidden
from spacy_treecrf.engine.chain.prediction import predict_labels
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.perceptron.learning import (
    Weights,
    draw_order,
    perceptron_pass,
    training_rows,
    zero_weights,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.perceptron_settings import PerceptronSettings
from spacy_treecrf.models.ruled import check_rules, check_stored_rules
from spacy_treecrf.models.stored_parts import (
    MAX_WEIGHT,
    masks_state,
    new_masks,
    read_masks,
    wider_masks,
)
from spacy_treecrf.storage.state_reader import StateReader

MAX_TOTAL = 1e15
# Votes that every label has in advance: less than one, so that none has a share of zero.
HALF_A_VOTE = 0.5


@dataclass(frozen=True)
class Learned:
    """The weights, their totals over all steps, which make averages, and the number of steps."""

    weights: Weights
    totals: Weights
    steps: int
    rounds: int

    @property
    def average(self) -> Weights:
        share = 1.0 / (self.steps + 1)
        pairs = zip(self.weights, self.totals, strict=True)
        return Weights(*(now - share * total for now, total in pairs))


@dataclass(frozen=True)
class Perceptron(SequenceModel):
    """A learned perceptron.

    voters: The weights that vote, if the method is "voted".
    """

    settings: PerceptronSettings
    labels: list[str]
    columns: Columns
    masks: Masks
    learned: Learned
    voters: tuple[Weights, ...] = ()

    @cached
    def chain(self) -> Chain:
        """The chain of the averaged weights; of order 0 where votes decide each position."""
        if self.settings.method == "voted":
            return Chain(0, *self.masks)
        return self._chain(self.learned.average)

    @property
    def rounds(self) -> int:
        return self.learned.rounds

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """Sums of averaged weights; where voters decide, the logarithms of the shares of votes."""
        if self.settings.method == "averaged":
            return self._average.score(data, workers)[:, None, :]
        n_labels = len(self.labels)
        votes = np.full((data.n_rows, n_labels), HALF_A_VOTE)
        rows = np.arange(data.n_rows)
        for scorer, chain in self._prepared_voters:
            scores = scorer.score(data, workers)[:, None, :]
            votes[rows, self._labels(scores, data, chain, workers)] += 1.0
        shares = votes / votes.sum(axis=1, keepdims=True)
        logs: npt.NDArray[np.float32] = np.log(shares).astype(np.float32)
        return logs[:, None, :]

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> PerceptronTrainer:
        return PerceptronTrainer(self, data, workers, held_out)

    def with_labels(self, labels: list[str]) -> Perceptron:
        """The model with further labels, whose weights are zero until a mistake teaches them."""
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        if self.rounds:
            raise ValueError(
                f"treecrf: a trained perceptron cannot learn the new label {new[0]!r}; train a "
                "new model with all labels, or use BoostedCRF, which can"
            )
        names = [*self.labels, *new]
        settings = self.settings
        masks = wider_masks(self.masks, settings.constraints, names, settings.order)
        return _untrained(settings, names, self.columns, masks)

    def with_columns(self, columns: Columns) -> Perceptron:
        if columns is self.columns:
            return self
        n_features, n_numeric = len(columns.counts), len(columns.numeric_names)

        def longer(weights: Weights) -> Weights:
            categorical, numeric = weights.categorical, weights.numeric
            return weights._replace(
                categorical=np.pad(categorical, ((0, n_features - len(categorical)), (0, 0))),
                numeric=np.pad(numeric, ((0, n_numeric - len(numeric)), (0, 0))),
            )

        learned = replace(
            self.learned, weights=longer(self.learned.weights), totals=longer(self.learned.totals)
        )
        voters = tuple(map(longer, self.voters))
        return replace(self, columns=columns, learned=learned, voters=voters)

    def to_state(self) -> dict[str, Any]:
        return {
            "kind": "perceptron",
            "settings": self.settings.to_state(),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "weights": self.learned.weights._asdict(),
            "totals": self.learned.totals._asdict(),
            "steps": self.learned.steps,
            "rounds": self.learned.rounds,
            "voters": [voter._asdict() for voter in self.voters],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Perceptron:
        reader = StateReader(state)
        reader.string("kind", choices=("perceptron",))
        settings = PerceptronSettings.from_state(reader.nested("settings"))
        labels = reader.strings("labels", unique=True)
        if not labels:
            reader.fail("labels", "at least one label", "none")
        columns = Columns.from_state(reader.table("columns"))
        if columns.missing != settings.missing:
            reader.fail("columns", f"missing={settings.missing!r}", "another")
        check_stored_rules(settings, labels, reader)
        masks = read_masks(reader.nested("masks"), len(labels))
        shape = (len(columns.counts), len(columns.numeric_names), len(labels))
        learned = Learned(
            _read_weights(reader.nested("weights"), *shape, MAX_WEIGHT),
            _read_weights(reader.nested("totals"), *shape, MAX_TOTAL),
            reader.integer("steps", 0, 2**53),
            reader.integer("rounds", 0, 2**31 - 1),
        )
        if any(np.any(np.abs(part) > MAX_WEIGHT) for part in learned.average):
            reader.fail("totals", "those of moderate averages", "others")
        tables = reader.nested_list("voters")
        voters = tuple(_read_weights(table, *shape, MAX_WEIGHT) for table in tables)
        reader.done()
        return cls(settings, labels, columns, masks, learned, voters)

    @cached
    def _average(self) -> LinearScorer:
        return self._scorer(self.learned.average)

    @cached
    def _prepared_voters(self) -> list[tuple[LinearScorer, Chain]]:
        return [(self._scorer(voter), self._chain(voter)) for voter in self.voters]

    def _scorer(self, weights: Weights) -> LinearScorer:
        return LinearScorer(_linear(weights), self.columns.bin_values)

    def _labels(
        self, scores: npt.NDArray[np.float32], data: Sequences, chain: Chain, workers: Workers
    ) -> npt.NDArray[np.int32]:
        return predict_labels(scores, data, chain, "viterbi", workers)

    def _chain(self, weights: Weights) -> Chain:
        start, trans, end = self.masks
        edges = weights.edges.astype(np.float32)
        settings = self.settings
        return Chain(settings.order, edges[-1] + start, edges[:-1] + trans, end, settings.beam)


class PerceptronTrainer(Trainer):
    """A trainer whose rounds pass over the training data, each in an order of its own."""

    def __init__(
        self,
        model: Perceptron,
        data: Sequences,
        workers: Workers,
        held_out: Sequences | None = None,
    ) -> None:
        self.data = data
        self.n_annotated = data.n_annotated
        self._model = model
        self._workers = workers
        self._held_out = held_out
        if first_forbidden(data.labels, data.offsets, model.masks) is not None:
            refuse_forbidden_labels(model.settings.constraints)

    @property
    def model(self) -> Perceptron:
        return self._model

    @property
    def log_likelihood(self) -> float:
        """A perceptron maximises none; this is what its scores make of the training data."""
        scores = self._model.scores(self.data, self._workers)
        likelihood = possible_log_likelihood(scores, self.data, self._model.chain)
        return likelihood / self.n_annotated

    @property
    def rounds(self) -> int:
        return self._model.rounds

    @property
    def n_trees(self) -> int:
        return 0

    @property
    def learned(self) -> Perceptron:
        return self._model

    @property
    def finished(self) -> bool:
        return False

    def _boost(self, rounds: int, callback: Callback | None) -> Perceptron:
        patience = self._model.settings.patience
        again = self.rounds > 0
        stopping = Stopping(patience, "auto", otherwise="accuracy", from_start=again)
        return run_rounds(self, rounds, stopping, callback)

    def learn_round(self) -> None:
        self._model = self._pass(self._model)

    def round_log_likelihood(self) -> float:
        return math.nan

    def held_out_figures(self) -> HeldOut | None:
        if self._held_out is None:
            return None
        data, model, workers = self._held_out, self._model, self._workers
        scores = model.scores(data, workers)
        return figures_of(
            scores, data, model.chain, model.settings.predictor, workers, span_labels(model.labels)
        )

    def _pass(self, model: Perceptron) -> Perceptron:
        """One round: every sequence once, with a stop wherever a voter is kept."""
        settings, data, learned = model.settings, self.data, model.learned
        start, trans, end = (mask.astype(np.float64) for mask in model.masks)
        weights = Weights(*(array.copy() for array in learned.weights))
        totals = Weights(*(array.copy() for array in learned.totals))
        order = draw_order(data.n_sequences, settings.seed, learned.rounds)
        voters, steps = list(model.voters), learned.steps
        n_parts = settings.voters if settings.method == "voted" else 1
        rows = training_rows(data, model.columns.bin_values)
        masks = StepPotentials(settings.order, np.concatenate([trans, start[None]]), end)
        for part in np.array_split(order, n_parts):
            perceptron_pass(rows, part, masks, settings.beam or 0, weights, totals, float(steps))
            steps += len(part)
            if settings.method == "voted":
                voters.append(Weights(*(array.copy() for array in weights)))
        after = Learned(weights, totals, steps, learned.rounds + 1)
        return replace(model, learned=after, voters=tuple(voters))


@dataclass(frozen=True)
class PerceptronRecipe(Recipe):
    """How to make a perceptron with these settings."""

    settings: PerceptronSettings

    def changed(self, **settings: Any) -> PerceptronRecipe:
        return PerceptronRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> Perceptron:
        settings = self.settings.resolved()
        check_rules(settings, labels)
        masks = new_masks(settings.constraints, labels, settings.order, data)
        return _untrained(settings, labels, columns, masks)

    def continued(self, model: SequenceModel) -> Perceptron:
        """The model with these settings, except for its order, method and constraints."""
        if not isinstance(model, Perceptron):
            raise ValueError("treecrf: only a perceptron can go on as one; train a new model")
        was = model.settings
        check_rules(self.settings, model.labels)
        settings = replace(
            self.settings.resolved(),
            order=was.order,
            method=was.method,
            constraints=was.constraints,
        )
        return replace(model, settings=settings)


def _untrained(
    settings: PerceptronSettings, labels: list[str], columns: Columns, masks: Masks
) -> Perceptron:
    zeros = zero_weights(len(columns.counts), len(columns.numeric_names), len(labels))
    return Perceptron(settings, labels, columns, masks, Learned(zeros, zeros, 0, 0))


def _linear(weights: Weights) -> LinearWeights:
    return LinearWeights(weights.categorical.astype(np.float32), weights.numeric.astype(np.float32))


def _read_weights(
    reader: StateReader, n_features: int, n_numeric: int, n_labels: int, limit: float
) -> Weights:
    shapes = ((n_features, n_labels), (n_numeric, n_labels), (n_labels + 1, n_labels))
    names = Weights._fields
    return Weights(
        *(
            reader.array(name, np.float64, shape, low=-limit, high=limit)
            for name, shape in zip(names, shapes, strict=True)
        )
    )
