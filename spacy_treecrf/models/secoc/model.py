"""Output coding (Hao and Fern 2007): hundreds of labels as the bits of code words.

Bits of the code are learned one by one, each as a CRF of two states (iid, i-SECOC, c-SECOC), or
all together by the likelihood of the labels. Either way a row gets scores of its labels, and a
chain over labels makes sequences of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.codes.bits import bit_probabilities, with_cascade
from spacy_treecrf.engine.codes.cascade import WINDOW, cascade_columns
from spacy_treecrf.engine.codes.chain_fitting import LabelChain
from spacy_treecrf.engine.codes.code_words import MAX_BITS, Bits, is_valid, label_scores
from spacy_treecrf.engine.codes.coded import code_scores
from spacy_treecrf.engine.codes.course import Course
from spacy_treecrf.engine.codes.cross_fitting import CrossFitted
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CONTEXT
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.ruled import check_stored_rules
from spacy_treecrf.models.secoc.settings import SECOCSettings
from spacy_treecrf.models.stored_parts import (
    MAX_WEIGHT,
    masks_state,
    read_masks,
    read_sparse,
    sparse_state,
)
from spacy_treecrf.storage.state_reader import StateReader

Floats = npt.NDArray[np.float32]

MAX_SCALE = 1e4
MAX_KEPT_BYTES = 2**29  # of the scorers of all bits


@dataclass(frozen=True)
class SECOCModel(SequenceModel):
    """What is learned of an output code; `SECOC` adds how it is trained.

    code: The code matrix of 0 and 1. shape: (n_labels, n_bits)
    potentials: Scores of bits. Joint training has one class for each bit, else there are two, for
        the bit's values 0 and 1. Behind the numeric columns of the data come those of the
        cascade, WINDOW for each bit.
    bit_edges: Transitions of bits that were learned one by one; the last row holds the scores of
        the first position. shape: (n_bits, 3, 2)
    label_chain: What turns scores of labels into label sequences.
    course: The course of joint training that has led to the potentials. None: nothing is learned
        so, or the model is of version 0.1.0, which stored none.
    cross_fitted: What a training that has not learned all bits yet needs to go on.
    """

    settings: SECOCSettings
    labels: list[str]
    columns: Columns
    masks: Masks
    code: Bits
    potentials: Potentials
    bit_edges: Floats
    label_chain: LabelChain
    course: Course | None = None
    cross_fitted: CrossFitted | None = None

    @cached
    def chain(self) -> Chain:
        return self.label_chain.chain(self.masks, self.settings.prediction_beam)

    @property
    def rounds(self) -> int:
        """The number of rounds in joint training, else the number of bits that are learned."""
        return self.potentials.rounds

    @property
    def n_bits(self) -> int:
        return int(self.code.shape[1])

    @property
    def score_bytes(self) -> int:
        n_numeric, n_classes = sizes(self.settings, self.columns, self.n_bits)
        return 4 * (len(self.labels) + n_classes) + n_numeric

    def scores(self, data: Sequences, workers: Workers) -> Floats:
        if self.settings.training == "joint":
            bits = self._scorer.score(data, workers)[:, 0]
            rows = [data.rows_of(chunk) for chunk in data.chunks]
            return code_scores(bits, self.code, [(r.start, r.stop) for r in rows], workers)
        return self.scores_of_bits(self.bit_probabilities(data, workers))

    def scores_of_bits(self, probabilities: Floats) -> Floats:
        """Scores of labels, given P(bit = 1) of the n bits that are learned. shape: (n_rows, n)"""
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
        """P(bit = 1 | the whole sequence) of the learned bits. shape: (n_rows, rounds)"""
        out = np.empty((data.n_rows, self.rounds), np.float32)
        order = self.settings.base.order
        cascade = self.settings.history != 0
        n_own = data.numeric.shape[1]
        if cascade:
            numeric = np.zeros((data.n_rows, n_own + WINDOW * self.n_bits), np.uint8)
            numeric[:, :n_own] = data.numeric
            data = replace(data, numeric=numeric)
        for j, scorer in enumerate(self._bit_scorers):
            out[:, j] = bit_probabilities(scorer, self.bit_edges[j], order, data, workers)
            if cascade:
                first = n_own + WINDOW * j
                numeric[:, first : first + WINDOW] = cascade_columns(out[:, [j]], data.offsets)
        return out

    def with_labels(self, labels: list[str]) -> SECOCModel:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        raise ValueError(
            f"treecrf: an output code cannot learn the new label {new[0]!r}, which has no code "
            "word; initialize or fit a new model with all labels"
        )

    def to_state(self) -> dict[str, Any]:
        chain = self.label_chain
        forest = self.course.as_grown if self.course else self.potentials.forest
        state = {
            "kind": "secoc",
            "settings": self.settings.to_state(),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "code": self.code,
            "linear": sparse_state(self.potentials.linear),
            "forest": forest.to_state(),
            "rounds": self.potentials.rounds,
            "bit_edges": self.bit_edges,
            "scale": chain.scale,
            "bias": chain.bias,
            "edges": chain.edges,
        }
        if self.course:
            state["course"] = self.course.to_state()
        if self.cross_fitted:
            state["cross_fitted"] = self.cross_fitted.to_state()
        return state

    # Long: a list of fields, each read and checked against those before it.
    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SECOCModel:
        reader = StateReader(state)
        reader.string("kind", choices=("secoc",))
        settings = SECOCSettings.from_state(reader.nested("settings"))
        labels = reader.strings("labels", unique=True)
        check_stored_rules(settings, labels, reader)
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
        masks = read_masks(reader.nested("masks"), n_labels)
        n_numeric, n_classes = sizes(settings, columns, n_bits)
        order = context_order(settings)
        forest = Forest.from_state(reader.nested("forest"), n_classes, n_features, n_numeric, order)
        if np.any(forest.threshold[forest.kind == CONTEXT] > 2):
            reader.fail("forest", "bits 0 and 1, or 2 for the start, as contexts", "others")
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        most = n_bits if settings.training == "columns" else 2**31 - 1
        rounds = reader.integer("rounds", n_rounds, most)
        n_learned = 2 * rounds if settings.training == "columns" else n_classes
        stored = reader.nested("linear")
        linear = read_sparse(stored, n_features, n_numeric, n_classes, n_learned)
        low, high = -MAX_WEIGHT, MAX_WEIGHT
        bit_edges = reader.array("bit_edges", np.float32, (n_bits, 3, 2), low=low, high=high)
        chain = LabelChain(
            settings.order,
            reader.number("scale", 0.0, MAX_SCALE),
            reader.array("bias", np.float32, (n_labels,), low=low, high=high),
            reader.array("edges", np.float32, (n_labels + 1, n_labels), low=low, high=high),
        )
        potentials = Potentials(chain.edges, linear, _zeros_like(linear), (forest,), rounds)
        course = cross_fitted = None
        if settings.training == "joint" and reader.has("course"):
            course = Course.from_state(reader.nested("course"), potentials, MAX_WEIGHT)
            potentials = course.potentials
        if settings.training == "columns" and reader.has("cross_fitted"):
            cross_fitted = CrossFitted.from_state(reader.nested("cross_fitted"), rounds)
        reader.done()
        return cls(
            settings,
            labels,
            columns,
            masks,
            code,
            potentials,
            bit_edges,
            chain,
            course,
            cross_fitted,
        )

    @cached
    def _scorer(self) -> Scorer:
        return Scorer(self.potentials, self.columns.bin_values, 0)

    @property
    def _bit_scorers(self) -> Iterable[Scorer]:
        """A scorer for each bit, where bits were learned one by one.

        They are kept for further sequences, unless they are large: each has two tables of features.
        """
        n_bytes = 8 * len(self.columns.counts) * self.rounds
        return self._kept_bit_scorers if n_bytes <= MAX_KEPT_BYTES else self._make_bit_scorers()

    @cached
    def _kept_bit_scorers(self) -> list[Scorer]:
        return list(self._make_bit_scorers())

    def _make_bit_scorers(self) -> Iterator[Scorer]:
        n_cascade = self.n_bits if self.settings.history != 0 else 0
        bin_values = with_cascade(self.columns, n_cascade).bin_values
        linear, forest = self.potentials.linear, self.potentials.forest
        for j in range(self.rounds):
            weights = LinearWeights(
                np.ascontiguousarray(linear.categorical[:, 2 * j : 2 * j + 2]),
                np.ascontiguousarray(linear.numeric[:, 2 * j : 2 * j + 2]),
            )
            mine = forest.select(forest.tree_class // 2 == j)
            mine = replace(mine, tree_class=mine.tree_class % 2)
            potentials = Potentials(self.bit_edges[j], weights, _zeros_like(weights), (mine,), 0)
            yield Scorer(potentials, bin_values, context_order(self.settings))


def sizes(settings: SECOCSettings, columns: Columns, n_bits: int) -> tuple[int, int]:
    """The number of numeric columns, the cascade's included, and of classes of the potentials."""
    n_numeric = len(columns.numeric_names) + (WINDOW * n_bits if settings.history != 0 else 0)
    return n_numeric, n_bits if settings.training == "joint" else 2 * n_bits


def context_order(settings: SECOCSettings) -> int:
    """How many positions back the trees of a bit see the values of that bit."""
    return settings.base.context_order if isinstance(settings.base, Settings) else 0


def _zeros_like(weights: LinearWeights) -> LinearWeights:
    return LinearWeights.nothing(*weights.shape)
