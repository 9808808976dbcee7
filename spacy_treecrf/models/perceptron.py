"""The averaged or voted perceptron: the fast baseline that everyone knows."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.boosting import Callback, RoundInfo, predict_labels
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks, first_forbidden
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.missing import ABSENT_METHOD
from spacy_treecrf.engine.perceptron import (
    Weights,
    draw_order,
    perceptron_pass,
    zero_weights,
)
from spacy_treecrf.engine.residuals import allowed_labels
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import CHOICES, MAX_ROUNDS, check_beam, check_integer
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.parts import (
    MAX_WEIGHT,
    masks_state,
    new_masks,
    read_masks,
    wider_masks,
)

Doubles = npt.NDArray[np.float64]

METHODS = ("averaged", "voted")
DEFAULT_ROUNDS = 10
MAX_TOTAL = 1e15
# Votes of labels that nobody votes for: less than any vote, and not nothing.
HALF_A_VOTE = 0.5

_CHOICES = {
    "method": METHODS,
    "constraints": CHOICES["constraints"],
    "predictor": CHOICES["predictor"],
}
_INTEGERS = {
    "order": (0, 1),
    "rounds": (0, MAX_ROUNDS),
    "voters": (1, 1000),
    "min_count": (1, 2**31 - 1),
    "max_bins": (2, 255),
    "patience": (0, 10**6),
    "threads": (0, 1024),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class PerceptronSettings:
    """What to learn and how; `PerceptronTagger` documents each of them."""

    method: str = "averaged"
    order: int = 1
    rounds: int | None = None
    voters: int = 2
    beam: int | None = None
    min_count: int = 1
    max_bins: int = 255
    constraints: str = "none"
    predictor: str = "viterbi"
    patience: int = 3
    threads: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ValueError(
                    f"treecrf: setting {name!r} is {value!r}; use one of "
                    + ", ".join(map(repr, choices))
                )
        for name, (low, high) in _INTEGERS.items():
            value = getattr(self, name)
            if name != "rounds" or value is not None:
                object.__setattr__(self, name, check_integer(name, value, low, high))
        check_beam(self.beam)
        if self.beam is not None and self.order == 0:
            raise ValueError(
                f"treecrf: setting 'beam' is {self.beam!r}; use None with order=0, which looks at "
                "each position on its own"
            )

    @property
    def missing(self) -> str:
        """A missing value is as if it was not mentioned."""
        return ABSENT_METHOD

    def resolved(self) -> PerceptronSettings:
        """The same with the number of rounds decided."""
        return replace(self, rounds=DEFAULT_ROUNDS) if self.rounds is None else self

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


@dataclass(frozen=True)
class Learned:
    """Weights as they are now, the totals that make averages of them, and steps behind them."""

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
    """A learned perceptron. voters: weights that vote, of method "voted"."""

    settings: PerceptronSettings
    labels: list[str]
    columns: Columns
    masks: Masks
    learned: Learned
    voters: tuple[Weights, ...] = ()

    @property
    def chain(self) -> Chain:
        """Of the averaged weights; votes are counted position by position."""
        if self.settings.method == "voted":
            return Chain(0, *self.masks)
        return self._chain(self.learned.average)

    @property
    def rounds(self) -> int:
        return self.learned.rounds

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """Sums of averaged weights; of voters, the logarithms of their votes' shares."""
        if self.settings.method == "averaged":
            return self._scores(self._average, data, workers)
        n_labels = len(self.labels)
        votes = np.full((data.n_rows, n_labels), HALF_A_VOTE)
        rows = np.arange(data.n_rows)
        for voter in self.voters:
            scores = self._scores(_linear(voter), data, workers)
            votes[rows, self._labels(scores, data, self._chain(voter), workers)] += 1.0
        shares = votes / votes.sum(axis=1, keepdims=True)
        logs: npt.NDArray[np.float32] = np.log(shares).astype(np.float32)
        return logs[:, None, :]

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> PerceptronTrainer:
        return PerceptronTrainer(self, data, workers, held_out)

    def with_labels(self, labels: list[str]) -> Perceptron:
        """Further labels have no weights: they win nowhere until a mistake teaches them."""
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

    def to_state(self) -> dict[str, Any]:
        return {
            "kind": "perceptron",
            "settings": asdict(self.settings),
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
        reader = Fields(state)
        reader.string("kind", choices=("perceptron",))
        settings = read_perceptron_settings(reader.fields("settings"))
        labels = reader.strings("labels", unique=True)
        if not labels:
            reader.fail("labels", "at least one label", "none")
        columns = Columns.from_state(reader.table("columns"))
        if columns.missing != settings.missing:
            reader.fail("columns", f"missing={settings.missing!r}", "another")
        masks = read_masks(reader.fields("masks"), len(labels))
        shape = (len(columns.counts), len(columns.numeric_names), len(labels))
        learned = Learned(
            _read_weights(reader.fields("weights"), *shape, MAX_WEIGHT),
            _read_weights(reader.fields("totals"), *shape, MAX_TOTAL),
            reader.integer("steps", 0, 2**53),
            reader.integer("rounds", 0, 2**31 - 1),
        )
        if any(np.any(np.abs(part) > MAX_WEIGHT) for part in learned.average):
            reader.fail("totals", "those of moderate averages", "others")
        tables = reader.fields_list("voters")
        voters = tuple(_read_weights(table, *shape, MAX_WEIGHT) for table in tables)
        reader.done()
        return cls(settings, labels, columns, masks, learned, voters)

    @cached_property
    def _average(self) -> LinearWeights:
        return _linear(self.learned.average)

    def _scores(
        self, weights: LinearWeights, data: Sequences, workers: Workers
    ) -> npt.NDArray[np.float32]:
        return linear_scores(data, weights, self.columns.bin_values, workers)[:, None, :]

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
    """Passes over the training data, in an order that each round draws anew."""

    def __init__(
        self,
        model: Perceptron,
        data: Sequences,
        workers: Workers,
        held_out: Sequences | None = None,
    ) -> None:
        self.data = data
        self.n_annotated = max(1, int((data.labels != UNKNOWN_LABEL).sum()))
        self._model = model
        self._workers = workers
        self._held_out = held_out
        row = first_forbidden(data.labels, data.offsets, model.masks)
        if row is not None:
            raise ValueError(
                f"treecrf: constraints={model.settings.constraints!r} forbid labels of the "
                "training data; correct the labels, or use constraints='observed' or 'none'"
            )

    @property
    def model(self) -> Perceptron:
        return self._model

    @property
    def log_likelihood(self) -> float:
        """A perceptron maximises none; this is what its scores make of the training data."""
        return _log_likelihood(self._model, self.data, self._workers) / self.n_annotated

    def train(self, rounds: int, callback: Callback | None = None) -> Perceptron:
        began = time.perf_counter()
        best, best_value = self._model, -np.inf
        patience = self._model.settings.patience
        while self._model.rounds < rounds:
            self._model = self._pass(self._model)
            info = RoundInfo(self._model.rounds, float("nan"), time.perf_counter() - began, 0)
            if self._held_out is not None:
                info = self._judged(info)
            if callback:
                callback(info)
            if info.held_out_accuracy is not None:
                if info.held_out_accuracy > best_value:
                    best, best_value = self._model, info.held_out_accuracy
                elif patience and self._model.rounds - best.rounds >= patience:
                    break
        return best if self._held_out is not None else self._model

    def _pass(self, model: Perceptron) -> Perceptron:
        """One round: every sequence once, with a stop for each voter."""
        settings, data, learned = model.settings, self.data, model.learned
        start, trans, end = (mask.astype(np.float64) for mask in model.masks)
        weights = Weights(*(array.copy() for array in learned.weights))
        totals = Weights(*(array.copy() for array in learned.totals))
        order = draw_order(data.n_sequences, settings.seed, learned.rounds)
        voters, steps = list(model.voters), learned.steps
        n_parts = settings.voters if settings.method == "voted" else 1
        for part in np.array_split(order, n_parts):
            perceptron_pass(
                data.codes,
                data.numeric,
                model.columns.bin_values,
                data.offsets,
                data.labels,
                data.weights,
                part,
                settings.order,
                np.concatenate([trans, start[None]]),
                end,
                settings.beam or 0,
                weights,
                totals,
                float(steps),
            )
            steps += len(part)
            if settings.method == "voted":
                voters.append(Weights(*(array.copy() for array in weights)))
        after = Learned(weights, totals, steps, learned.rounds + 1)
        return replace(model, learned=after, voters=tuple(voters))

    def _judged(self, info: RoundInfo) -> RoundInfo:
        data, model = self._held_out, self._model
        assert data is not None
        scores = model.scores(data, self._workers)
        predictor = model.settings.predictor
        labels = predict_labels(scores, data, model.chain, predictor, self._workers)
        known = data.labels != UNKNOWN_LABEL
        n = max(1, int(known.sum()))
        return replace(
            info,
            held_out_log_likelihood=_log_likelihood(model, data, self._workers) / n,
            held_out_accuracy=float((labels == data.labels)[known].sum()) / n,
        )


@dataclass(frozen=True)
class PerceptronRecipe(Recipe):
    """A perceptron with these settings."""

    settings: PerceptronSettings

    def changed(self, **settings: Any) -> PerceptronRecipe:
        return PerceptronRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> Perceptron:
        settings = self.settings.resolved()
        masks = new_masks(settings.constraints, labels, settings.order, data)
        return _untrained(settings, labels, columns, masks)

    def continued(self, model: SequenceModel) -> Perceptron:
        """What the model is stays as it is: its order, its method, its constraints."""
        if not isinstance(model, Perceptron):
            raise ValueError("treecrf: only a perceptron can go on as one; train a new model")
        was = model.settings
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


def _log_likelihood(model: Perceptron, data: Sequences, workers: Workers) -> float:
    allowed = allowed_labels(data.labels, len(model.labels))
    scores = model.scores(data, workers)
    log_p = chains.log_probability_of(scores, data.offsets, model.chain, allowed)
    log_p[np.isneginf(log_p)] = 0.0  # forbidden by constraints: no weight can change that
    return float(log_p.sum())


def _read_weights(
    reader: Fields, n_features: int, n_numeric: int, n_labels: int, limit: float
) -> Weights:
    shapes = ((n_features, n_labels), (n_numeric, n_labels), (n_labels + 1, n_labels))
    names = Weights._fields
    return Weights(
        *(
            reader.array(name, np.float64, shape, low=-limit, high=limit)
            for name, shape in zip(names, shapes, strict=True)
        )
    )


def read_perceptron_settings(reader: Fields) -> PerceptronSettings:
    values: dict[str, Any] = {name: reader.string(name) for name in _CHOICES}
    values |= {name: reader.integer(name) for name in _INTEGERS}
    values["beam"] = None if reader.is_none("beam") else reader.integer("beam")
    reader.done()
    return PerceptronSettings(**values)
