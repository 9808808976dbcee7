"""Maximum-entropy Markov models by boosted trees: P(y_t | y_{t-k..t-1}, x), position by position.

Order 0 is the sliding window, whose positions are independent of each other. Training uses the
annotated previous labels (McCallum 2000; Hao 2009, section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.boosting.rounds import Callback
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.constraints import Masks, constrain
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.memm.label_history import LabelHistory, turned_round
from spacy_treecrf.engine.memm.memm_scoring import LocalScorer
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.models.memm.base import MEMMBase, MEMMBaseRecipe, read_common
from spacy_treecrf.models.memm.decoding import Inputs, MEMMDecoder
from spacy_treecrf.models.memm.settings import MEMMSettings
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.new_labels import history_moved, new_label_forests, wider
from spacy_treecrf.models.stored_parts import read_sparse, sparse_state
from spacy_treecrf.storage.state_reader import StateReader


@dataclass(frozen=True)
class MEMM(MEMMBase):
    """A learned MEMM."""

    settings: MEMMSettings
    potentials: Potentials

    @cached
    def decoder(self) -> MEMMDecoder:
        bin_values = self.columns.bin_values
        scorer = LocalScorer(
            self.history,
            self.potentials.forest,
            self.potentials.linear,
            bin_values,
            len(bin_values),
        )
        return MEMMDecoder(scorer, self.settings, self.masks, _unchanged)

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> MEMMTrainer:
        return MEMMTrainer(self, data, workers, held_out)

    def _wider_potentials(self, old: LabelHistory, wide: LabelHistory) -> Potentials:
        was = self.potentials
        added = range(old.n_labels, wide.n_labels)
        return Potentials(
            edges=np.zeros((wide.n_labels + 1, wide.n_labels), np.float32),
            linear=wider(_moved(was.linear, old, wide), len(added)),
            previous_linear=wider(_moved(was.previous_linear, old, wide), len(added)),
            forests=new_label_forests(
                [history_moved(forest, old, wide) for forest in was.forests], added, was.rounds
            ),
            rounds=was.rounds,
        )

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        previous = potentials.previous_linear
        if potentials.rounds >= self.settings.linear_rounds:  # no later linear round will need it
            previous = LinearWeights.zeros(*previous.shape)
        return self.common_state("memm") | {
            "linear": sparse_state(potentials.linear),
            "previous_linear": sparse_state(previous),
            "forest": potentials.forest.to_state(),
            "rounds": potentials.rounds,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MEMM:
        reader = StateReader(state)
        settings, labels, columns, masks = read_common(reader, "memm", MEMMSettings)
        n_labels = len(labels)
        history = LabelHistory(n_labels, settings.order)
        n_features = history.n_features + len(columns.counts)
        n_numeric = len(columns.numeric_names)
        forest = Forest.from_state(reader.nested("forest"), n_labels, n_features, n_numeric, 0)
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        potentials = Potentials(
            edges=np.zeros((n_labels + 1, n_labels), np.float32),
            linear=read_sparse(reader.nested("linear"), n_features, n_numeric, n_labels),
            previous_linear=read_sparse(
                reader.nested("previous_linear"), n_features, n_numeric, n_labels
            ),
            forests=(forest,),
            rounds=reader.integer("rounds", n_rounds, 2**31 - 1),
        )
        reader.done()
        return cls(settings, labels, columns, masks, potentials)


def _unchanged(data: Sequences, workers: Workers) -> Inputs:
    return data, None


def _moved(weights: LinearWeights, old: LabelHistory, new: LabelHistory) -> LinearWeights:
    """The weights with those of previous labels at their new ids; new labels have zeros."""
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
    """A trainer that boosts a MEMM on the annotated previous labels."""

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
        spans = span_labels(memm.labels)
        if spans and memm.settings.right_to_left:
            spans = spans.turned_round()
        self._booster.spans = spans
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> MEMM:
        return self._with(self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def _boost(self, rounds: int, callback: Callback | None) -> Potentials:
        return self._booster.boost(rounds, callback)

    def _with(self, learned: Potentials) -> MEMM:
        return replace(self._memm, potentials=learned)


@dataclass(frozen=True)
class MEMMRecipe(MEMMBaseRecipe):
    """How to make a MEMM."""

    settings: MEMMSettings
    model_type = MEMM
    name = "a MEMM"

    def untrained(
        self, settings: MEMMSettings, labels: list[str], columns: Columns, masks: Masks
    ) -> MEMM:
        n_features = LabelHistory(len(labels), settings.order).n_features + len(columns.counts)
        potentials = Potentials.zeros(len(labels), n_features, len(columns.numeric_names))
        return MEMM(settings, labels, columns, masks, potentials)
