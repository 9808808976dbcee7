"""Temperatures by position: rows of which a chain is unsure are divided by another number.

Scores of row t may be divided by any number that depends on the input alone: the result is a
chain again, whose probabilities of labels, spans and whole label sequences agree with each other.
Here the number depends on the entropy of the row's labels under the undivided scores,

    log T_t = shift + slope * H_t + bend * H_t ** 2,    H_t = - sum_k P(y_t = k) log P(y_t = k).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.prediction import predict_marginals
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.storage.state_reader import StateReader

# Temperatures are between 1 / MOST and MOST: held-out data have few rows of the highest entropies.
MOST = 2.0
MAX_COEFFICIENT = 10.0


@dataclass(frozen=True)
class TemperatureCurve:
    """The temperature of a row as a function of the entropy, in nats, of its labels."""

    shift: float
    slope: float
    bend: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not abs(value) <= MAX_COEFFICIENT:  # nor nan
                raise ValueError(
                    f"treecrf: the {name} of a temperature curve is {value}; use a number from "
                    f"{-MAX_COEFFICIENT:g} to {MAX_COEFFICIENT:g}"
                )

    def temperatures(self, entropies: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """What scores of rows of these entropies are divided by. shape: (n_rows,)"""
        log_t = self.shift + entropies * (self.slope + entropies * self.bend)
        limit = math.log(MOST)
        return np.exp(np.clip(log_t, -limit, limit)).astype(np.float32)

    def temperatures_of(
        self, scores: npt.NDArray[np.float32], data: Sequences, chain: Chain, workers: Workers
    ) -> npt.NDArray[np.float32]:
        """The temperatures of whole sequences by their undivided scores. shape: (n_rows,)"""
        return self.temperatures(label_entropies(predict_marginals(scores, data, chain, workers)))

    def __str__(self) -> str:
        return f"{self.shift:.3f} {self.slope:+.3f} H {self.bend:+.3f} H^2"

    def to_state(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_state(cls, reader: StateReader) -> TemperatureCurve:
        low, high = -MAX_COEFFICIENT, MAX_COEFFICIENT
        return cls(*(reader.number(name, low, high) for name in ("shift", "slope", "bend")))


def label_entropies(nodes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The entropy, in nats, of each row's labels. nodes: P(y_t = k), shape (n_rows, n_labels)"""
    logs = np.log(nodes, out=np.zeros_like(nodes), where=nodes > 0.0)
    logs *= nodes
    found: npt.NDArray[np.float64] = np.maximum(0.0, -logs.sum(axis=1))
    return found
