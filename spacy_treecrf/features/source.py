"""What a source of features is: keys of tokens, and what the keys mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.features.batch import Batch

Window = tuple[int, ...]
Texts = Sequence["str | None"]
Entities = Sequence[Sequence[tuple[int, int, str]]]


@dataclass(frozen=True)
class Reading:
    """Values of some tokens by base column; None and NaN where a token has none.

    missing: Of a text column, where that is because the value is missing.
    """

    texts: dict[str, Texts] = field(default_factory=dict)
    numbers: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    missing: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


class Source(ABC):
    """Base columns that are read together.

    Tokens of the same key have the same values, so only one of them is ever read: `read` is the
    slow part, done once for each distinct key. A source that is not `cached` has no keys and is
    read token by token.
    """

    name: str  # of its state
    attrs: tuple[int, ...] = ()  # of spaCy, that it wants in the batch
    cached = True
    reads_annotations = False  # set by other pipes, thus different from epoch to epoch

    @abstractmethod
    def window_of(self, column: str) -> Window | None:
        """Offsets at which a base column is seen; None if it is not of this source."""

    @abstractmethod
    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        """The values of the tokens at these positions."""

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """One for each token; asked for only if the source is `cached`."""
        return np.zeros(batch.n_tokens, np.uint64)

    def stamp(self, vocab: Vocab) -> Any:
        """Whatever, beside the vocab itself, makes cached values stale when it changes."""
        return None

    def check(self, vocab: Vocab) -> None:
        """Load what the config asks for, or say what is missing."""

    def learn(self, docs: Sequence[Doc], entities: Entities | None) -> None:
        """Learn from the annotation of the training data."""

    def prepare(self, batch: Batch) -> None:
        """Learn from the tokens of the training data, before they are read."""

    def to_state(self) -> dict[str, Any]:
        return {}

    def from_state(self, fields: Fields) -> None:
        pass


def column_name(text: str) -> str:
    """A text as part of a column's name: the first "=" of a feature ends its column."""
    return text.replace("%", "%25").replace("=", "%3D")
