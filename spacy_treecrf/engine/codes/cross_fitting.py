"""Predictions of bits for the training data by models that have not learned from it.

Later bits and the chain over labels learn from them. The finished bits cannot make them again, so
that a training which stops before its last bit keeps them for when it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import DIGEST_BYTES, Sequences
from spacy_treecrf.storage.state_reader import StateReader


@dataclass(frozen=True)
class CrossFitted:
    """P(bit = 1) of the bits that are learned, and the data that it belongs to."""

    digest: npt.NDArray[np.uint8]  # shape: (DIGEST_BYTES,)
    probabilities: npt.NDArray[np.float32]  # shape: (n_rows, n_bits)

    @classmethod
    def of(cls, data: Sequences, probabilities: npt.NDArray[np.float32]) -> CrossFitted:
        return cls(data.digest(), np.ascontiguousarray(probabilities))

    def belongs_to(self, data: Sequences) -> bool:
        return np.array_equal(self.digest, data.digest())

    def to_state(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_state(cls, reader: StateReader, n_bits: int) -> CrossFitted:
        return cls(
            reader.array("digest", np.uint8, (DIGEST_BYTES,)),
            reader.array("probabilities", np.float32, (None, n_bits), low=0.0, high=1.0),
        )
