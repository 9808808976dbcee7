"""The boosted CRF on encoded sequences: how it is made, trained further and stored."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotators import confusions_of
from spacy_treecrf.engine.boosting.boosting import Booster, make_chain
from spacy_treecrf.engine.boosting.conjugate import Direction
from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer
from spacy_treecrf.engine.boosting.rounds import Callback
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.encoding.attribute_columns import columns_from_state
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import IN_TREES, in_trees
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.preorder import forest_reader, preorder_state
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.models.compacting import compacted, without_small_weights
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.new_labels import longer, new_label_forests, start_moved, wider
from spacy_treecrf.models.quick_prediction import (
    FirstRows,
    QuickPredictor,
    QuickRows,
    first_rows,
    quick_predictor,
    quick_rows,
)
from spacy_treecrf.models.ruled import check_rules, check_stored_rules
from spacy_treecrf.models.stored_parts import (
    MAX_WEIGHT,
    masks_state,
    new_masks,
    read_masks,
    read_sparse,
    read_weights,
    shared_state,
    sparse_state,
    wider_masks,
)
from spacy_treecrf.storage.state_reader import StateReader


@dataclass(frozen=True)
class CRF(SequenceModel):
    """A learned model: labels by id, what its columns mean, hard constraints, and potentials."""

    settings: Settings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials
    compact: bool = False  # made for prediction alone, see `compacted`

    @cached
    def chain(self) -> Chain:
        settings = self.settings
        return make_chain(self.potentials.edges, self.masks, settings.order, settings.beam)

    @cached
    def scorer(self) -> Scorer:
        incomplete = in_trees(self.columns.missing, self.columns.map)
        order = self.settings.context_order
        return Scorer(self.potentials, self.columns.bin_values, order, incomplete)

    @cached
    def first_rows(self) -> FirstRows | None:
        return None if self.curve else first_rows(self.scorer, self.chain)

    @cached
    def quick_rows(self) -> QuickRows | None:
        return None if self.curve else quick_rows(self.scorer, self.chain)

    @cached
    def quick(self) -> QuickPredictor | None:
        return None if self.curve else quick_predictor(self.columns, self.scorer, self.chain)

    def __getstate__(self) -> dict[str, Any]:
        # without what was prepared for predictions, which holds addresses in this process
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @property
    def score_bytes(self) -> int:
        return int(4 * len(self.labels) ** (self.settings.context_order + 1))

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        scores = self.scorer.score(data, workers)
        if self.curve is not None:
            temperatures = self.curve.temperatures_of(scores, data, self.chain, workers)
            scores /= temperatures[:, None, None]
        return scores

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> CRFTrainer:
        self._refuse_learning()
        return CRFTrainer(self, data, workers, held_out)

    def boosted(
        self,
        data: Sequences,
        rounds: int,
        workers: Workers,
        held_out: Sequences | None = None,
        callback: Callback | None = None,
    ) -> CRF:
        """This model after boosting on `data` until it has `rounds` rounds."""
        trained = self.trainer(data, workers, held_out).train(rounds, callback)
        assert isinstance(trained, CRF)
        return trained

    def with_labels(self, labels: list[str]) -> CRF:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        self._refuse_learning()
        names = [*self.labels, *new]
        self.settings.check_labels(len(names))
        old, n_old, n_new = self.potentials, len(self.labels), len(new)
        edges = np.zeros((len(names) + 1, len(names)), np.float32)
        edges[:n_old, :n_old] = old.edges[:-1]
        edges[-1, :n_old] = old.edges[-1]
        forests = [start_moved(forest, n_old, len(names)) for forest in old.forests]
        potentials = Potentials(
            edges=edges,
            linear=wider(old.linear, n_new),
            previous_linear=wider(old.previous_linear, n_new),
            forests=new_label_forests(forests, range(n_old, len(names)), old.rounds),
            rounds=old.rounds,
            direction=old.direction and old.direction.left(n_new if old.rounds else 0, len(names)),
            temperature=old.temperature,
            outside=old.outside,
            curve=old.curve,
        )
        masks = wider_masks(self.masks, self.settings.constraints, names, self.settings.order)
        return replace(self, labels=names, masks=masks, potentials=potentials)

    def with_columns(self, columns: Columns) -> CRF:
        if columns is self.columns:
            return self
        self._refuse_learning()
        n_features, n_numeric = len(columns.counts), len(columns.numeric_names)
        potentials = replace(
            self.potentials,
            linear=longer(self.potentials.linear, n_features, n_numeric),
            previous_linear=longer(self.potentials.previous_linear, n_features, n_numeric),
        )
        return replace(self, columns=columns, potentials=potentials)

    @property
    def temperature(self) -> float:
        return self.potentials.temperature

    @property
    def curve(self) -> TemperatureCurve | None:
        """How the temperature of a row depends on its entropy; None: it is one for all rows."""
        return self.potentials.curve

    @cached
    def uncurved(self) -> CRF:
        return self if self.curve is None else self.curved(None)

    @property
    def is_compact(self) -> bool:
        return self.compact

    def compacted(self) -> CRF:
        if self.compact:
            return self
        potentials, columns = compacted(self.potentials, self.columns)
        return replace(self, columns=columns, potentials=potentials, compact=True)

    def without_small_weights(self, threshold: float) -> CRF:
        """The CRF without weights of features below the threshold, and with rounded values."""
        return replace(self, potentials=without_small_weights(self.potentials, threshold))

    def cooled(self, temperature: float) -> CRF:
        """The CRF whose scores are divided by a temperature, so that one above 1 is less sure."""
        return replace(self, potentials=self.potentials.cooled(temperature))

    def corrected(self, correction: Correction) -> CRF:
        """The CRF with a correction on top of earlier ones; only a curve takes another's place."""
        potentials = self.potentials.cooled(correction.temperature)
        if correction.outside:
            potentials = potentials.lowered(self.labels.index(OUTSIDE), correction.outside)
        return replace(self, potentials=replace(potentials, curve=correction.curve))

    def curved(self, curve: TemperatureCurve | None) -> CRF:
        """The CRF whose rows have temperatures by a curve, in place of the one that it had."""
        return replace(self, potentials=replace(self.potentials, curve=curve))

    def _refuse_learning(self) -> None:
        if self.compact:
            raise ValueError(
                "treecrf: this model is compact and cannot learn more: what only training needs "
                "was left out when it was saved or pruned; go on with the model as it was saved "
                "without compact, or train a new one"
            )

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        previous = potentials.previous_linear
        if potentials.rounds >= self.settings.linear_rounds:  # no later linear round will need it
            previous = LinearWeights.zeros(*previous.shape)
        forest = potentials.as_grown
        if self.columns.missing in IN_TREES:
            forest = forest.with_missing_branches()
        in_preorder = self.compact and forest.missing_branches is None
        store_weights = shared_state if self.compact else sparse_state
        return {
            "kind": "crf",
            "settings": self.settings.to_state(),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "edges": potentials.edges,
            "linear": store_weights(potentials.linear),
            "previous_linear": sparse_state(previous),
            "forest": preorder_state(forest) if in_preorder else forest.to_state(),
            "rounds": potentials.rounds,
            "direction": potentials.direction.to_state() if potentials.direction else {},
            **({"compact": True} if self.compact else {}),
            **({"temperature": potentials.temperature} if potentials.temperature != 1.0 else {}),
            **({"outside": potentials.outside} if potentials.outside else {}),
            **({"curve": self.curve.to_state()} if self.curve else {}),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CRF:
        """Rebuild a model; every index, shape and value is checked before a kernel can see it."""
        reader = StateReader(state)
        reader.string("kind", choices=("crf",))
        settings = Settings.from_state(reader.nested("settings"))
        labels = reader.strings("labels", unique=True)
        if not labels:
            reader.fail("labels", "at least one label", "none")
        columns = columns_from_state(reader.table("columns"))
        n_labels, n_features, n_numeric = (
            len(labels),
            len(columns.counts),
            len(columns.numeric_names),
        )
        masks = read_masks(reader.nested("masks"), n_labels)
        if settings.missing != columns.missing:
            reader.fail("settings", f"missing={columns.missing!r}, as in columns", "another")
        if settings.family == "auto":
            reader.fail("settings", "a decided family", "'auto'")
        try:
            settings.check_labels(n_labels)
        except ValueError as error:
            reader.fail("labels", "few enough for the order", str(error))
        check_stored_rules(settings, labels, reader)
        forest = Forest.from_state(
            forest_reader(reader.table("forest"), "forest"),
            n_labels,
            n_features,
            n_numeric,
            settings.context_order,
            with_missing_branches=columns.missing in IN_TREES,
        )
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        direction = reader.table("direction")
        potentials = Potentials(
            edges=reader.array(
                "edges", np.float32, (n_labels + 1, n_labels), low=-MAX_WEIGHT, high=MAX_WEIGHT
            ),
            linear=read_weights(reader.nested("linear"), n_features, n_numeric, n_labels),
            previous_linear=read_sparse(
                reader.nested("previous_linear"), n_features, n_numeric, n_labels
            ),
            forests=(forest,),
            rounds=reader.integer("rounds", n_rounds, 2**31 - 1),
            direction=Direction.from_state(direction, forest.n_trees, n_labels)
            if direction
            else None,
            temperature=reader.number("temperature", low=0.0)
            if reader.has("temperature")  # only of models that were calibrated
            else 1.0,
            outside=reader.number("outside", low=-MAX_WEIGHT, high=MAX_WEIGHT)
            if reader.has("outside")  # only of models that were calibrated with it
            else 0.0,
            curve=TemperatureCurve.from_state(reader.nested("curve"))
            if reader.has("curve")
            else None,
        )
        compact = reader.boolean("compact") if reader.has("compact") else False
        reader.done()
        return cls(settings, labels, columns, masks, potentials, compact)


def new_crf(settings: Settings, labels: list[str], columns: Columns, data: Sequences) -> CRF:
    """A model that has learned nothing yet; `data` tells which transitions occur."""
    settings = settings.resolved(len(labels))
    masks = new_masks(settings.constraints, labels, settings.order, data)
    return empty_crf(settings, labels, columns, masks)


def empty_crf(settings: Settings, labels: list[str], columns: Columns, masks: Masks) -> CRF:
    """A model that has learned nothing yet, with these hard constraints."""
    settings = settings.resolved(len(labels))
    settings.check_labels(len(labels))
    check_rules(settings, labels)
    if settings.missing != columns.missing:
        raise ValueError(
            f"treecrf: setting 'missing' is {settings.missing!r}, but the columns were fitted for "
            f"{columns.missing!r}; fit them with the same"
        )
    potentials = Potentials.zeros(len(labels), len(columns.counts), len(columns.numeric_names))
    return CRF(settings, labels, columns, masks, potentials)


class CRFTrainer(Trainer):
    """A trainer that boosts a CRF."""

    def __init__(
        self, crf: CRF, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        self._crf = crf
        self._booster = Booster(
            data,
            crf.columns,
            len(crf.labels),
            crf.masks,
            crf.settings,
            workers,
            crf.potentials,
            held_out,
        )
        self._booster.spans = span_labels(crf.labels)
        self.data = self._booster.train.data
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> CRF:
        return self._with(self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    @property
    def confusions(self) -> npt.NDArray[np.float64] | None:
        """P(given | true) of each annotator, if there are any.

        shape: (n_annotators, n_labels, n_labels)
        """
        soft = self._booster.soft
        return None if soft is None or soft.prior is None else confusions_of(soft)

    def _boost(self, rounds: int, callback: Callback | None) -> Potentials:
        return self._booster.boost(rounds, callback)

    def _with(self, learned: Potentials) -> CRF:
        return replace(self._crf, potentials=learned)


@dataclass(frozen=True)
class CRFRecipe(Recipe):
    """How to make a boosted CRF with these settings."""

    settings: Settings

    @property
    def storage(self) -> RowStorage:
        return RowStorage(self.settings.spill)

    def changed(self, **settings: Any) -> CRFRecipe:
        return CRFRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> CRF:
        return new_crf(self.settings, labels, columns, data)

    def continued(self, model: SequenceModel) -> CRF:
        """The model with these settings, except for those that say what it is.

        These are its family, its order, its treatment of missing values and its constraints.
        """
        if not isinstance(model, CRF):
            raise ValueError(
                "treecrf: only a boosted CRF can be boosted further; train a new model"
            )
        model._refuse_learning()
        check_rules(self.settings, model.labels)
        was = model.settings
        settings = replace(
            self.settings,
            family=was.family,
            order=was.order,
            missing=was.missing,
            constraints=was.constraints,
        )
        return replace(model, settings=settings.resolved(len(model.labels)))
