"""Output coding (Hao and Fern 2007): hundreds of labels as the bits of code words.

Columns of the code are learned one by one, each as a CRF of two states (iid, i-SECOC, c-SECOC), or
all together by the likelihood of the labels. Either way a row gets scores of its labels, and a
chain over labels makes sequences of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.bits import bit_probabilities, with_cascade
from spacy_treecrf.engine.cascade import WINDOW, cascade_columns
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.chain_fitting import LabelChain
from spacy_treecrf.engine.coded import code_scores
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.potentials import Potentials, Scorer
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.splitting import CONTEXT
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.codes import MAX_BITS, Bits, is_valid, label_scores, make_code
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.parts import (
    MAX_WEIGHT,
    masks_state,
    new_masks,
    read_masks,
    read_sparse,
    sparse_state,
)
from spacy_treecrf.models.secoc_settings import (
    SECOCSettings,
    read_secoc_settings,
    secoc_settings_state,
)

Floats = npt.NDArray[np.float32]

MAX_SCALE = 1e4


@dataclass(frozen=True)
class SECOC(SequenceModel):
    """A learned model.

    code: (n_labels, n_bits) of 0 and 1. potentials: of bits. Its classes are the bits in joint
    training; else two for each bit, for its values 0 and 1. Numeric columns behind the data's are
    those of the cascade, WINDOW for each bit. bit_edges: (n_bits, 3, 2), of columns that were
    learned one by one; the last row is the first position's. label_chain: over labels.
    """

    settings: SECOCSettings
    labels: list[str]
    columns: Columns
    masks: Masks
    code: Bits
    potentials: Potentials
    bit_edges: Floats
    label_chain: LabelChain

    @property
    def chain(self) -> Chain:
        return self.label_chain.chain(self.masks, self.settings.prediction_beam)

    @property
    def rounds(self) -> int:
        """Rounds of joint training; else the number of columns that are learned."""
        return self.potentials.rounds

    @property
    def n_bits(self) -> int:
        return int(self.code.shape[1])

    def scores(self, data: Sequences, workers: Workers) -> Floats:
        if self.settings.training == "joint":
            bits = self._scorer.score(data, workers)[:, 0]
            rows = [data.rows_of(chunk) for chunk in data.chunks]
            return code_scores(bits, self.code, [(r.start, r.stop) for r in rows], workers)
        return self.scores_of_bits(self.bit_probabilities(data, workers))

    def scores_of_bits(self, probabilities: Floats) -> Floats:
        """Scores of labels, given P(bit = 1) of the columns that are learned: (n_rows, n)."""
        n_rows, n = probabilities.shape
        if n == 0:
            return np.zeros((n_rows, 1, len(self.labels)), np.float32)
        scores = label_scores(probabilities, self.code[:, :n], self.distance)
        return self.label_chain.scores(scores)[:, None, :]

    @property
    def distance(self) -> str:
        """How bit probabilities are compared to code words."""
        return "likelihood" if self.settings.decoding == "joint" else self.settings.decoding

    def bit_probabilities(self, data: Sequences, workers: Workers) -> Floats:
        """P(bit = 1), given all of its sequence, of the learned columns. (n_rows, n_columns)"""
        out = np.empty((data.n_rows, self.rounds), np.float32)
        order = self.settings.base.order
        cascade = self.settings.history != 0
        n_own = data.numeric.shape[1]
        if cascade:
            numeric = np.zeros((data.n_rows, n_own + WINDOW * self.n_bits), np.uint8)
            numeric[:, :n_own] = data.numeric
            data = replace(data, numeric=numeric)
        for j, scorer in enumerate(self._column_scorers):
            out[:, j] = bit_probabilities(scorer, self.bit_edges[j], order, data, workers)
            if cascade:
                first = n_own + WINDOW * j
                numeric[:, first : first + WINDOW] = cascade_columns(out[:, [j]], data.offsets)
        return out

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> Trainer:
        from spacy_treecrf.models.secoc_columns import ColumnsTrainer
        from spacy_treecrf.models.secoc_joint import JointTrainer

        kind = JointTrainer if self.settings.training == "joint" else ColumnsTrainer
        return kind(self, data, workers, held_out)

    def with_labels(self, labels: list[str]) -> SECOC:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        raise ValueError(
            f"treecrf: an output code cannot learn the new label {new[0]!r}, which has no code "
            "word; initialize or fit a new model with all labels"
        )

    def to_state(self) -> dict[str, Any]:
        chain = self.label_chain
        return {
            "kind": "secoc",
            "settings": secoc_settings_state(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "code": self.code,
            "linear": sparse_state(self.potentials.linear),
            "forest": self.potentials.forest.to_state(),
            "rounds": self.potentials.rounds,
            "bit_edges": self.bit_edges,
            "scale": chain.scale,
            "bias": chain.bias,
            "edges": chain.edges,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SECOC:
        reader = Fields(state)
        reader.string("kind", choices=("secoc",))
        settings = read_secoc_settings(reader.fields("settings"))
        labels = reader.strings("labels", unique=True)
        columns = Columns.from_state(reader.table("columns"))
        n_labels, n_features = len(labels), len(columns.counts)
        code = reader.array("code", np.uint8, (n_labels, None), low=0, high=1)
        n_bits = code.shape[1]
        if n_labels < 1 or not 1 <= n_bits <= MAX_BITS or not is_valid(code):
            reader.fail("code", "a code word for each label, all different", "others")
        if settings.bits != n_bits or settings.base.rounds is None:
            reader.fail("settings", f"{n_bits} bits, and rounds of the base", "others")
        if columns.missing != settings.missing:
            reader.fail("columns", f"missing={settings.missing!r}", "another")
        masks = read_masks(reader.fields("masks"), n_labels)
        n_numeric, n_classes = _sizes(settings, columns, n_bits)
        linear = read_sparse(reader.fields("linear"), n_features, n_numeric, n_classes)
        context_order = _context_order(settings)
        forest = Forest.from_state(
            reader.fields("forest"), n_classes, n_features, n_numeric, context_order
        )
        if np.any(forest.threshold[forest.kind == CONTEXT] > 2):
            reader.fail("forest", "bits 0 and 1, or 2 for the start, as contexts", "others")
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        most = n_bits if settings.training == "columns" else 2**31 - 1
        rounds = reader.integer("rounds", n_rounds, most)
        low, high = -MAX_WEIGHT, MAX_WEIGHT
        bit_edges = reader.array("bit_edges", np.float32, (n_bits, 3, 2), low=low, high=high)
        chain = LabelChain(
            settings.order,
            reader.number("scale", 0.0, MAX_SCALE),
            reader.array("bias", np.float32, (n_labels,), low=low, high=high),
            reader.array("edges", np.float32, (n_labels + 1, n_labels), low=low, high=high),
        )
        reader.done()
        potentials = Potentials(chain.edges, linear, _nothing(linear), (forest,), rounds)
        return cls(settings, labels, columns, masks, code, potentials, bit_edges, chain)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.potentials, self.columns.bin_values, 0)

    @cached_property
    def _column_scorers(self) -> list[Scorer]:
        """Of columns that were learned one by one."""
        n_cascade = self.n_bits if self.settings.history != 0 else 0
        bin_values = with_cascade(self.columns, n_cascade).bin_values
        linear, forest = self.potentials.linear, self.potentials.forest
        scorers = []
        for j in range(self.rounds):
            weights = LinearWeights(
                np.ascontiguousarray(linear.categorical[:, 2 * j : 2 * j + 2]),
                np.ascontiguousarray(linear.numeric[:, 2 * j : 2 * j + 2]),
            )
            mine = forest.select(forest.tree_class // 2 == j)
            mine = replace(mine, tree_class=mine.tree_class % 2)
            potentials = Potentials(self.bit_edges[j], weights, _nothing(weights), (mine,), 0)
            scorers.append(Scorer(potentials, bin_values, _context_order(self.settings)))
        return scorers


@dataclass(frozen=True)
class SECOCRecipe(Recipe):
    """Output coding with these settings."""

    settings: SECOCSettings

    def changed(self, **settings: Any) -> SECOCRecipe:
        return SECOCRecipe(self.settings.changed(**settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> SECOC:
        settings = self.settings.resolved(len(labels))
        _refuse_absent(labels, data)
        n_labels, n_features = len(labels), len(columns.counts)
        code = make_code(settings.code, n_labels, settings.bits, settings.seed)
        n_bits = code.shape[1]
        chain = LabelChain.plain(n_labels)
        zeros = LinearWeights.zeros(n_features, *_sizes(settings, columns, n_bits))
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
        """What the model is stays as it is: its code, its history, its training and constraints."""
        if not isinstance(model, SECOC):
            raise ValueError("treecrf: only an output code can go on as one; train a new model")
        was, now = model.settings, self.settings.resolved(len(model.labels))
        kept = ("bits", "code", "training", "history", "decoding", "constraints", "seed")
        same = {name: getattr(was, name) for name in kept}
        if type(was.base) is not type(now.base) or was.base.order != now.base.order:
            raise ValueError(
                "treecrf: the base of an output code cannot change between trainings; set the "
                "same, or train a new model"
            )
        return replace(model, settings=replace(now, **same))


def _sizes(settings: SECOCSettings, columns: Columns, n_bits: int) -> tuple[int, int]:
    """Numeric columns, those of the cascade included, and classes of the potentials."""
    n_numeric = len(columns.numeric_names) + (WINDOW * n_bits if settings.history != 0 else 0)
    return n_numeric, n_bits if settings.training == "joint" else 2 * n_bits


def _context_order(settings: SECOCSettings) -> int:
    """How many bits before its own the trees of a column see."""
    return settings.base.context_order if isinstance(settings.base, Settings) else 0


def _refuse_absent(labels: list[str], data: Sequences) -> None:
    """A label that never occurs is a mistake, unless its scheme brings it: I-X where B-X occurs."""
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


def _nothing(weights: LinearWeights) -> LinearWeights:
    return LinearWeights.zeros(*weights.shape)
