"""The form that all corpora share: labelled sequences, in parts for training and testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class LabelledSequence:
    """One sequence: a sentence, a word as letters, a chain of residues, or the lines of a file.

    words: What is labelled.
    labels: By layer, a label for each word.
    features: Further inputs by name: a str, bool or list of numbers for each word.
    key: Sequences of one key stay on one side of every split: a spelling, a document.
    document: The number of the document, where a corpus has documents.
    fold: The published fold, or the number of the file.
    """

    words: list[str]
    labels: dict[str, list[str]]
    features: dict[str, list[Any]] = field(default_factory=dict)
    key: str = ""
    document: int | None = None
    fold: int | None = None

    def __post_init__(self) -> None:
        for name, column in [*self.labels.items(), *self.features.items()]:
            if len(column) != len(self.words):
                raise ValueError(
                    f"treecrf: sequence {self.key!r} has {len(self.words)} words and "
                    f"{len(column)} values of {name!r}; give one for each word"
                )


Splits = dict[str, list[LabelledSequence]]  # by part: "train", "dev", "test"


def n_tokens(sequences: Sequence[LabelledSequence]) -> int:
    return sum(len(sequence.words) for sequence in sequences)
