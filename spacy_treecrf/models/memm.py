"""Maximum-entropy Markov models by boosted trees: P(y_t | y_{t-k..t-1}, x), position by position.

Order 0 is the sliding window: positions independent of each other. Trained on the annotated
previous labels (McCallum 2000; Hao 2009, section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting import Booster, Callback
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks, constrain
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.history import History, turned_round
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.local import LocalScorer
from spacy_treecrf.engine.potentials import Potentials
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.local_decoding import Inputs, LocalDecoder, LocalModel
from spacy_treecrf.models.local_settings import MEMMSettings, read_settings, settings_state
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.new_labels import history_moved, new_label_forests, wider
from spacy_treecrf.models.parts import (
    masks_state,
    new_masks,
    read_masks,
    read_sparse,
    sparse_state,
    wider_masks,
)


@dataclass(frozen=True)
class MEMM(LocalModel):
    """A learned model. potentials: over the features of `History`, then those of the columns."""

    settings: MEMMSettings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @cached_property
    def decoder(self) -> LocalDecoder:
        bin_values = self.columns.bin_values
        scorer = LocalScorer(
            self.history,
            self.potentials.forest,
            self.potentials.linear,
            bin_values,
            len(bin_values),
        )
        return LocalDecoder(scorer, self.settings, self.masks, _as_it_is)

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> MEMMTrainer:
        return MEMMTrainer(self, data, workers, held_out)

    def with_labels(self, labels: list[str]) -> MEMM:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        names = [*self.labels, *new]
        self.settings.check_labels(len(names))
        old, wide = self.history, History(len(names), self.settings.order)
        was = self.potentials
        potentials = Potentials(
            edges=np.zeros((len(names) + 1, len(names)), np.float32),
            linear=wider(_moved(was.linear, old, wide), len(new)),
            previous_linear=wider(_moved(was.previous_linear, old, wide), len(new)),
            forests=new_label_forests(
                [history_moved(forest, old, wide) for forest in was.forests],
                range(old.n_labels, wide.n_labels),
                was.rounds,
            ),
            rounds=was.rounds,
        )
        masks = wider_masks(self.masks, self.settings.constraints, names, self.settings.order)
        return replace(self, labels=names, masks=masks, potentials=potentials)

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        previous = potentials.previous_linear
        if potentials.rounds >= self.settings.linear_rounds:  # no linear round will ask for it
            previous = LinearWeights.zeros(*previous.shape)
        return {
            "kind": "memm",
            "settings": settings_state(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "linear": sparse_state(potentials.linear),
            "previous_linear": sparse_state(previous),
            "forest": potentials.forest.to_state(),
            "rounds": potentials.rounds,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MEMM:
        fields = Fields(state)
        fields.string("kind", choices=("memm",))
        settings = read_settings(fields.fields("settings"), MEMMSettings)
        labels = fields.strings("labels", unique=True)
        if not labels:
            fields.fail("labels", "at least one label", "none")
        n_labels = len(labels)
        columns = Columns.from_state(fields.table("columns"))
        masks = read_masks(fields.fields("masks"), n_labels)
        try:
            settings.check_labels(n_labels)
        except ValueError as error:
            fields.fail("labels", "few enough for the order", str(error))
        history = History(n_labels, settings.order)
        n_features = history.n_features + len(columns.counts)
        n_numeric = len(columns.numeric_names)
        forest = Forest.from_state(fields.fields("forest"), n_labels, n_features, n_numeric, 0)
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        potentials = Potentials(
            edges=np.zeros((n_labels + 1, n_labels), np.float32),
            linear=read_sparse(fields.fields("linear"), n_features, n_numeric, n_labels),
            previous_linear=read_sparse(
                fields.fields("previous_linear"), n_features, n_numeric, n_labels
            ),
            forests=(forest,),
            rounds=fields.integer("rounds", n_rounds, 2**31 - 1),
        )
        fields.done()
        return cls(settings, labels, columns, masks, potentials)


def _as_it_is(data: Sequences, workers: Workers) -> Inputs:
    return data, None


def _moved(weights: LinearWeights, old: History, new: History) -> LinearWeights:
    """Weights of previous labels at their new ids; new labels have none."""
    n_labels = weights.categorical.shape[1]
    own = np.zeros((new.order, new.n_labels + 1, n_labels), np.float32)
    was = weights.categorical[: old.n_features].reshape(old.order, old.n_labels + 1, n_labels)
    own[:, : old.n_labels] = was[:, :-1]
    own[:, -1] = was[:, -1]  # before the start
    rest = weights.categorical[old.n_features :]
    return LinearWeights(
        np.concatenate([own.reshape(new.n_features, n_labels), rest]), weights.numeric
    )


class MEMMTrainer(Trainer):
    """Boosts a MEMM on the annotated previous labels."""

    def __init__(
        self, memm: MEMM, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        self._memm = memm
        self.data = data
        history = memm.history

        def rows(part: Sequences) -> Sequences:
            return history.rows(turned_round(part) if memm.settings.right_to_left else part)

        n_labels = len(memm.labels)
        self._booster = Booster(
            rows(data),
            history.columns(memm.columns),
            n_labels,
            constrain("none", memm.labels, order=0),
            memm.settings.boosting,
            workers,
            memm.potentials,
            rows(held_out) if held_out else None,
        )
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> MEMM:
        return replace(self._memm, potentials=self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def train(self, rounds: int, callback: Callback | None = None) -> MEMM:
        return replace(self._memm, potentials=self._booster.boost(rounds, callback))


@dataclass(frozen=True)
class MEMMRecipe(Recipe):
    """A MEMM with these settings."""

    settings: MEMMSettings

    def changed(self, **settings: Any) -> MEMMRecipe:
        return MEMMRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> MEMM:
        settings = self.settings.resolved(len(labels))
        settings.check_labels(len(labels))
        masks = new_masks(settings.constraints, labels, settings.order, data)
        n_features = History(len(labels), settings.order).n_features + len(columns.counts)
        potentials = Potentials.zeros(len(labels), n_features, len(columns.numeric_names))
        return MEMM(settings, labels, columns, masks, potentials)

    def continued(self, model: SequenceModel) -> MEMM:
        """What the model is stays as it is: its order, its direction, its constraints."""
        if not isinstance(model, MEMM):
            raise ValueError("treecrf: only a MEMM can be trained on as one; train a new model")
        was = model.settings
        settings = replace(
            self.settings,
            order=was.order,
            right_to_left=was.right_to_left,
            constraints=was.constraints,
        ).resolved(len(model.labels))
        settings.check_labels(len(model.labels))
        return replace(model, settings=settings)
