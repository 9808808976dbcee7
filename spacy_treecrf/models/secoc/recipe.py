"""Output coding (Hao and Fern 2007): how models of it are made and trained further."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.codes.chain_fitting import LabelChain
from spacy_treecrf.engine.codes.code_words import make_code
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.ruled import check_rules
from spacy_treecrf.models.secoc.bits import BitsTrainer
from spacy_treecrf.models.secoc.joint import JointTrainer
from spacy_treecrf.models.secoc.model import SECOCModel, sizes
from spacy_treecrf.models.secoc.settings import SECOCSettings
from spacy_treecrf.models.stored_parts import new_masks


@dataclass(frozen=True)
class SECOC(SECOCModel):
    """A learned output code, and how it is trained further."""

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> Trainer:
        kind = JointTrainer if self.settings.training == "joint" else BitsTrainer
        return kind(self, data, workers, held_out)


@dataclass(frozen=True)
class SECOCRecipe(Recipe):
    """How to make an output code with these settings."""

    settings: SECOCSettings

    def changed(self, **settings: Any) -> SECOCRecipe:
        return SECOCRecipe(self.settings.changed(**settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> SECOC:
        settings = self.settings.resolved(len(labels))
        _refuse_absent(labels, data)
        check_rules(settings, labels)
        n_labels, n_features = len(labels), len(columns.counts)
        code = make_code(settings.code, n_labels, settings.bits, settings.seed)
        n_bits = code.shape[1]
        chain = LabelChain.plain(n_labels)
        zeros = LinearWeights.zeros(n_features, *sizes(settings, columns, n_bits))
        return SECOC(
            settings,
            labels,
            columns,
            new_masks(settings.constraints, labels, settings.order, data),
            code,
            Potentials(chain.edges, zeros, zeros, (), 0),
            np.zeros((n_bits, 3, 2), np.float32),
            replace(chain, order=settings.order),
        )

    def continued(self, model: SequenceModel) -> SECOC:
        """The model with these settings, except for those that its code and its bits depend on."""
        if not isinstance(model, SECOC):
            raise ValueError("treecrf: only an output code can go on as one; train a new model")
        was, now = model.settings, self.settings.resolved(len(model.labels))
        check_rules(now, model.labels)
        kept = ("bits", "code", "training", "history", "decoding", "constraints", "seed")
        same = {name: getattr(was, name) for name in kept}
        if type(was.base) is not type(now.base) or was.base.order != now.base.order:
            raise ValueError(
                "treecrf: the base of an output code cannot change between trainings; set the "
                "same, or train a new model"
            )
        return replace(model, settings=replace(now, **same))


def _refuse_absent(labels: list[str], data: Sequences) -> None:
    """Refuse labels that never occur, unless they belong to a scheme: I-X where B-X occurs."""
    known = data.labels[data.labels != UNKNOWN_LABEL]
    counts = np.bincount(known, minlength=len(labels))
    types = {label[1:] for label, n in zip(labels, counts, strict=True) if n and label[1:2] == "-"}
    absent = [label for label, n in zip(labels, counts, strict=True) if not n]
    absent = [label for label in absent if label[1:] not in types]
    if absent:
        raise ValueError(
            f"treecrf: label {absent[0]!r} never occurs in the training data, so nothing can be "
            "learned of its code word; leave it out, or annotate it"
        )
