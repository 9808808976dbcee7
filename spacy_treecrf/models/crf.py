"""The boosted CRF on encoded sequences: fit, go on fitting, predict, and its stored form."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting import (
    Booster,
    Callback,
    make_chain,
    predict_labels,
    predict_marginals,
)
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.conjugate import Direction
from spacy_treecrf.engine.constraints import constrain, observed_transitions
from spacy_treecrf.engine.decoding import nbest
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.missing import IN_TREES, in_trees
from spacy_treecrf.engine.potentials import Potentials, Scorer
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.settings import BOOLEANS, CHOICES, INTEGERS, NUMBERS, Settings
from spacy_treecrf.engine.threads import Workers

Masks = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]
MAX_WEIGHT = 1e6


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; `crf` is the model as it was then."""

    def __init__(self, crf: CRF) -> None:
        super().__init__(f"after {crf.potentials.rounds} rounds")
        self.crf = crf


@dataclass(frozen=True)
class CRF:
    """A learned model: labels by id, what its columns mean, hard constraints, and potentials."""

    settings: Settings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials

    @property
    def chain(self) -> Chain:
        return make_chain(self.potentials.edges, self.masks, self.settings.order)

    @cached_property
    def scorer(self) -> Scorer:
        incomplete = in_trees(self.columns.missing, self.columns.map)
        order = self.settings.context_order
        return Scorer(self.potentials, self.columns.bin_values, order, incomplete)

    def boosted(
        self,
        data: Sequences,
        rounds: int | None = None,
        workers: Workers | None = None,
        held_out: Sequences | None = None,
        callback: Callback | None = None,
    ) -> CRF:
        """This model after boosting on `data` until it has `rounds` rounds (settings: how many)."""
        if rounds is None:
            rounds = self.settings.resolved(len(self.labels)).rounds
        assert rounds is not None
        workers = workers or Workers(self.settings.threads)
        booster = Booster(
            data,
            self.columns,
            len(self.labels),
            self.masks,
            self.settings,
            workers,
            self.potentials,
            held_out,
        )
        try:
            return replace(self, potentials=booster.boost(rounds, callback))
        except KeyboardInterrupt as interrupt:
            raise TrainingInterrupted(replace(self, potentials=booster.potentials)) from interrupt

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        previous = potentials.previous_linear
        if potentials.rounds >= self.settings.linear_rounds:  # no linear round will ask for it
            previous = LinearWeights.zeros(*previous.shape)
        forest = potentials.as_grown
        if self.columns.missing in IN_TREES:
            forest = forest.with_detours()
        return {
            "kind": "crf",
            "settings": asdict(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": {
                name: np.isfinite(mask) for name, mask in zip(MASK_NAMES, self.masks, strict=True)
            },
            "edges": potentials.edges,
            "linear": _sparse_state(potentials.linear),
            "previous_linear": _sparse_state(previous),
            "forest": forest.to_state(),
            "rounds": potentials.rounds,
            "direction": potentials.direction.to_state() if potentials.direction else {},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CRF:
        """Rebuild a model; every index, shape and value is checked before a kernel can see it."""
        fields = Fields(state)
        fields.string("kind", choices=("crf",))
        settings = _read_settings(fields.fields("settings"))
        labels = fields.strings("labels", unique=True)
        if not labels:
            fields.fail("labels", "at least one label", "none")
        columns = Columns.from_state(fields.table("columns"))
        n_labels, n_features, n_numeric = (
            len(labels),
            len(columns.counts),
            len(columns.numeric_names),
        )
        masks = fields.fields("masks")
        shapes = ((n_labels,), (n_labels, n_labels), (n_labels,))
        allowed = [
            masks.array(name, np.bool_, shape)
            for name, shape in zip(MASK_NAMES, shapes, strict=True)
        ]
        if settings.missing != columns.missing:
            fields.fail("settings", f"missing={columns.missing!r}, as in columns", "another")
        if settings.family == "auto":
            fields.fail("settings", "a decided family", "'auto'")
        try:
            settings.check_labels(n_labels)
        except ValueError as error:
            fields.fail("labels", "few enough for the order", str(error))
        forest = Forest.from_state(
            fields.fields("forest"),
            n_labels,
            n_features,
            n_numeric,
            settings.context_order,
            with_detours=columns.missing in IN_TREES,
        )
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        direction = fields.table("direction")
        potentials = Potentials(
            edges=fields.array(
                "edges", np.float32, (n_labels + 1, n_labels), low=-MAX_WEIGHT, high=MAX_WEIGHT
            ),
            linear=_read_sparse(fields.fields("linear"), n_features, n_numeric, n_labels),
            previous_linear=_read_sparse(
                fields.fields("previous_linear"), n_features, n_numeric, n_labels
            ),
            forests=(forest,),
            rounds=fields.integer("rounds", n_rounds, 2**31 - 1),
            direction=Direction.from_state(direction, forest.n_trees, n_labels)
            if direction
            else None,
        )
        fields.done()
        start, trans, end = (np.where(a, 0.0, -np.inf).astype(np.float32) for a in allowed)
        return cls(settings, labels, columns, (start, trans, end), potentials)


MASK_NAMES = ("start", "trans", "end")


def new_crf(settings: Settings, labels: list[str], columns: Columns, data: Sequences) -> CRF:
    """A model that has learned nothing yet; `data` tells which transitions occur."""
    settings = settings.resolved(len(labels))
    settings.check_labels(len(labels))
    if settings.missing != columns.missing:
        raise ValueError(
            f"treecrf: setting 'missing' is {settings.missing!r}, but the columns were fitted for "
            f"{columns.missing!r}; fit them with the same"
        )
    seen: dict[str, Any] = {}
    if settings.constraints == "observed":
        start, trans, end = observed_transitions(data.labels, data.offsets, len(labels))
        seen = {"observed_start": start, "observed_trans": trans, "observed_end": end}
    masks = constrain(settings.constraints, labels, order=settings.order, **seen)
    potentials = Potentials.zeros(len(labels), len(columns.counts), len(columns.numeric_names))
    return CRF(settings, labels, columns, masks, potentials)


class Predictor:
    """A model and the threads that apply it. predictor: "viterbi" or "marginal"."""

    def __init__(self, crf: CRF, workers: Workers, predictor: str | None = None) -> None:
        self.crf = crf
        self.workers = workers
        self.predictor = predictor or crf.settings.predictor
        self.chain = crf.chain

    def scores(self, data: Sequences) -> npt.NDArray[np.float32]:
        return self.crf.scorer.score(data, self.workers)

    def labels(self, data: Sequences) -> npt.NDArray[np.int32]:
        return predict_labels(self.scores(data), data, self.chain, self.predictor, self.workers)

    def marginals(self, data: Sequences) -> npt.NDArray[np.float64]:
        return predict_marginals(self.scores(data), data, self.chain, self.workers)

    def nbest(
        self, data: Sequences, n: int
    ) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]]:
        """Of each sequence: label sequences (m, length) and their log probabilities (m,)."""
        scores = self.scores(data)
        bounds = zip(data.offsets[:-1], data.offsets[1:], strict=True)
        return self.workers.map(lambda b: nbest(scores[b[0] : b[1]], self.chain, n), list(bounds))


def _sparse_state(weights: LinearWeights) -> dict[str, Any]:
    """Only the weights that are not zero."""
    where = np.flatnonzero(weights.categorical)
    return {
        "where": where.astype(np.int64),
        "value": weights.categorical.ravel()[where],
        "numeric": weights.numeric,
    }


def _read_sparse(fields: Fields, n_features: int, n_numeric: int, n_labels: int) -> LinearWeights:
    where = fields.array("where", np.int64, (None,), low=0, high=max(0, n_features * n_labels - 1))
    low, high = -MAX_WEIGHT, MAX_WEIGHT
    value = fields.array("value", np.float32, (len(where),), low=low, high=high)
    numeric = fields.array("numeric", np.float32, (n_numeric, n_labels), low=low, high=high)
    if len(where) > n_features * n_labels or np.any(np.diff(where) <= 0):
        fields.fail("where", "rising positions", "others")
    categorical = np.zeros(n_features * n_labels, np.float32)
    categorical[where] = value
    return LinearWeights(categorical.reshape(n_features, n_labels), numeric)


def _read_settings(fields: Fields) -> Settings:
    values: dict[str, Any] = {}
    for name in CHOICES:
        values[name] = fields.string(name)
    for name in INTEGERS:
        values[name] = fields.integer(name)
    values["rounds"] = fields.integer("rounds")
    for name in NUMBERS:
        values[name] = fields.number(name)
    for name in BOOLEANS:
        values[name] = fields.boolean(name)
    fields.done()
    return Settings(**values)
