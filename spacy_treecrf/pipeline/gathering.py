"""The examples of an epoch that comes in parts: boosting looks at all of them in every round.

spaCy's batchers cut the corpus into small batches. Trees that were grown on one of them would know
nothing else, so that parts are gathered, and rounds are trained on all that has come so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spacy.training import Example

from spacy_treecrf.models.model import SequenceModel

Identity = tuple[int, int, int]  # number of the reference, hashes of words and annotation
Item = tuple[Identity, Example]


def n_tokens(items: Sequence[Item]) -> int:
    return sum(len(example.predicted) for _, example in items)


@dataclass
class Gathering:
    """Examples that belong to one training, and what was learned of them.

    start: The model before the first of them.
    model: The model after the last rounds on them.
    complete: Whether an example came again: an epoch is over, and these are all.
    owes: Whether examples have come that the model does not know.
    passed: Tokens that came since the first epoch was over.
    granted: Rounds that were trained for them.
    """

    start: SequenceModel | None
    model: SequenceModel | None
    by_number: dict[int, Item] = field(default_factory=dict)
    complete: bool = False
    owes: bool = False
    passed: int = 0
    granted: int = 0

    @property
    def items(self) -> list[Item]:
        """All examples in one order, whatever order they came in."""
        return sorted(self.by_number.values(), key=lambda item: item[0])

    def knows(self, items: Sequence[Item]) -> bool:
        """Whether any of these examples came before."""
        return any(identity[0] in self.by_number for identity, _ in items)

    def is_covered_by(self, items: Sequence[Item]) -> bool:
        """Whether these are all examples that came before, and perhaps more."""
        return self.by_number.keys() <= {identity[0] for identity, _ in items}

    def add(self, items: Sequence[Item]) -> None:
        """Take in a part of the epoch; an example that comes again replaces itself."""
        for identity, example in items:
            before = self.by_number.get(identity[0])
            self.complete |= before is not None
            self.owes |= before is None or before[0] != identity
            self.by_number[identity[0]] = identity, example
        self.passed += n_tokens(items)

    def rounds_due(self, rounds: int) -> int:
        """How many rounds to train now, if all tokens once are worth so many rounds."""
        size = n_tokens(list(self.by_number.values()))
        due = max(0, self.passed * rounds // max(1, size) - self.granted)
        self.granted += due
        return due
