"""Learning of a bit of an output code by itself: a function of the data, the bit and a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.codes.bits import (
    bit_probabilities,
    boosted_bit,
    perceptron_bit,
    with_cascade,
)
from spacy_treecrf.engine.codes.code_words import Bits
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.secoc.settings import SECOCSettings

Floats = npt.NDArray[np.float32]
Int64s = npt.NDArray[np.int64]
LearnedBit = tuple[Potentials, Floats]  # with its P(bit = 1) in the rows that it predicts

_ALONE = Workers(1)


@dataclass(frozen=True)
class Fold:
    """Rows that the models of bits learn from, and rows that they predict for later bits.

    The two have no row in common if bits are cross-fitted; else both are all of the data.
    """

    learned: Sequences
    learned_rows: Int64s  # in the training data
    predicted: Sequences
    predicted_rows: Int64s


@dataclass(frozen=True)
class BitLearner:
    """Learns any bit on any fold, in this process or in another one.

    n_folds: 1 if bits learn from all rows.
    """

    settings: SECOCSettings
    code: Bits
    columns: Columns
    data: Sequences
    n_folds: int

    def __call__(
        self, bit: int, fold: int, cascade: npt.NDArray[np.uint8] | None = None
    ) -> LearnedBit:
        """A bit that is learned on a fold.

        cascade: What earlier bits predict, as numeric columns of all rows; None if the bit sees
            none of them.
        """
        settings, base = self.settings, self.settings.base
        chosen = self.folds[fold]
        data, others = chosen.learned, chosen.predicted
        columns = with_cascade(self.columns, settings.n_history(bit))
        if cascade is not None:
            data = _widened(data, cascade[chosen.learned_rows])
            others = _widened(others, cascade[chosen.predicted_rows])
        labels = self.code[np.maximum(data.labels, 0), bit].astype(np.int32)
        labels[data.labels == UNKNOWN_LABEL] = UNKNOWN_LABEL
        data = replace(data, labels=labels)
        seed = int(mix(np.uint64(settings.seed), np.uint64(bit))) % 2**63
        if isinstance(base, Settings):
            learned = boosted_bit(data, columns, replace(base, seed=seed))
        else:
            assert base.rounds is not None
            learned = perceptron_bit(data, columns, base.rounds, base.order, seed)
        context_order = base.context_order if isinstance(base, Settings) else 0
        scorer = Scorer(learned, columns.bin_values, context_order)
        return learned, bit_probabilities(scorer, learned.edges, base.order, others, _ALONE)

    def __getstate__(self) -> dict[str, Any]:
        """The fields: folds, which hold the data several times, are cut where they are needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached
    def folds(self) -> Sequence[Fold]:
        """Folds of about as many sequences each, drawn by the seed."""
        data, n, seed = self.data, self.n_folds, np.uint64(self.settings.seed)
        if n == 1:
            every = np.arange(data.n_rows)
            return [Fold(data, every, data, every)]
        keys = [mix(seed, np.uint64(s)) for s in range(data.n_sequences)]
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


def _widened(data: Sequences, numeric: npt.NDArray[np.uint8]) -> Sequences:
    return replace(data, numeric=np.concatenate([data.numeric, numeric], axis=1))
