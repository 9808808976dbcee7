"""The protocol of sources of features: keys of tokens, and what the keys mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.features.batch import Batch
from spacy_treecrf.storage.state_reader import StateReader

Window = tuple[int, ...]
Texts = Sequence["str | None"]
Entities = Sequence[Sequence[tuple[int, int, str]]]


@dataclass(frozen=True)
class Reading:
    """Values of some tokens by base column; None and NaN where a token has no value.

    missing: For a text column, the tokens that have no value because it is missing.
    """

    texts: dict[str, Texts] = field(default_factory=dict)
    numbers: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    missing: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownValues:
    """What a model knows of a source.

    texts: By base column, the number of each value, from 1. numbers: The numeric base columns.
    memo: What the source wants to find out once.
    """

    texts: dict[str, dict[str | None, int]]
    numbers: list[str]
    memo: dict[Any, Any] = field(default_factory=dict)


class VectorRows(NamedTuple):
    """Numbers of tokens as rows of a table of vectors; -1: the token has none.

    dimensions: The column of the table that each column of numbers is.
    """

    vectors: npt.NDArray[np.float32]
    words: npt.NDArray[np.int64]
    dimensions: npt.NDArray[np.int64]


@dataclass(frozen=True)
class NumberedValues:
    """Values of some tokens in the columns of `KnownValues`, in their order.

    values: The number of each text, 0 for one that is not known. shape: (n_texts, n_tokens)
    numbers: NaN where a token has none, shape (n_numbers, n_tokens); or where they are to be found.
    missing: As in `Reading`.
    """

    values: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.float64] | VectorRows
    missing: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


class Source(ABC):
    """A source of base columns that are read together.

    Tokens of the same key have the same values, so only one of them is ever read: `read` is the
    slow part, done once for each distinct key. A source that is not `cached` has no keys and is
    read token by token.
    """

    name: str  # under which its state is stored
    attrs: tuple[int, ...] = ()  # the ids of spaCy's attributes that it reads
    cached = True
    reads_annotations = False  # whether it reads annotation of other pipes, which differs by epoch
    learns_from_tokens = False  # whether `prepare` looks at more than the vocab

    @abstractmethod
    def window_of(self, column: str) -> Window | None:
        """The offsets at which a base column is seen; None if this source does not have it."""

    @abstractmethod
    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        """The values of the tokens at these positions."""

    def numbered(
        self, batch: Batch, positions: npt.NDArray[np.int64], known: KnownValues
    ) -> NumberedValues:
        """What `read` returns, as numbers; a source may have a quicker way to them."""
        reading = self.read(batch, positions)
        values = np.zeros((len(known.texts), len(positions)), np.int64)
        for column, (name, numbers) in enumerate(known.texts.items()):
            if name in reading.texts:
                get = numbers.get
                values[column] = [get(text, 0) for text in reading.texts[name]]
        found = np.full((len(known.numbers), len(positions)), np.nan)
        for column, name in enumerate(known.numbers):
            if name in reading.numbers:
                found[column] = reading.numbers[name]
        return NumberedValues(values, found, reading.missing)

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """The key of each token; asked for only if the source is `cached`."""
        return np.zeros(batch.n_tokens, np.uint64)

    def is_empty(self, batch: Batch) -> bool:
        """Whether no token has a value, also not that of an edge: then nothing is read."""
        return False

    def stamp(self, vocab: Vocab) -> Any:
        """A value that changes whenever cached values become stale, beside the vocab itself."""
        return None

    def check(self, vocab: Vocab) -> None:
        """Load what the config asks for; a ValueError says what is missing."""

    def lesson(self, docs: Sequence[Doc], entities: Entities | None) -> Any:
        """What the annotation of some training docs teaches; None: nothing."""
        return None

    def learn(self, lessons: Sequence[Any]) -> None:
        """Learn from the lessons of all training docs, in their order."""

    def prepare(self, batch: Batch) -> None:
        """Learn from the tokens of the training data, before they are read."""

    def forget(self, most: int) -> None:
        """Drop what was found out about words, and can be again, if it is of more than `most`."""

    def to_state(self) -> dict[str, Any]:
        return {}

    def from_state(self, reader: StateReader) -> None:
        pass


def column_name(text: str) -> str:
    """The text, made fit to be part of a column's name: the first "=" of a feature ends that."""
    return text.replace("%", "%25").replace("=", "%3D")
