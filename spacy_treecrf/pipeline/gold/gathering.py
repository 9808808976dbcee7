"""The examples of an epoch that comes in parts: boosting looks at all of them in every round.

spaCy's batchers cut the corpus into small batches. Trees that were grown on one of them would know
nothing else, so that parts are gathered, and rounds are trained on all that has come so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import ref

from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.models.model import SequenceModel

Identity = tuple[int, int, int]  # number of the reference, hashes of words and annotation
Content = tuple[int, int]  # the hashes alone
Item = tuple[Identity, Example]


def n_tokens(items: Sequence[Item]) -> int:
    return sum(len(example.predicted) for _, example in items)


@dataclass
class Kept:
    """An example in its parts. own: the reference, until it is learned; then None."""

    identity: Identity
    predicted: Doc
    reference: ref[Doc]
    own: Doc | None


@dataclass
class Gathering:
    """Examples that belong to one training, and what was learned of them.

    start: The model before the first of them.
    model: The model after the last rounds on them.
    complete: Whether an example came again: an epoch is over, and these are all.
    owes: Whether examples have come that the model does not know.
    passed: Tokens that came since the first epoch was over.
    granted: Rounds that were trained for them.
    size: Tokens of all examples.
    numbers_of: The numbers of the examples with the same words and annotation, in turns.
    lost_some: Whether examples that were learned are gone, because nobody else kept them.
    """

    start: SequenceModel | None
    model: SequenceModel | None
    by_number: dict[int, Kept] = field(default_factory=dict)
    numbers_of: dict[Content, list[int]] = field(default_factory=dict)
    size: int = 0
    complete: bool = False
    lost_some: bool = False
    owes: bool = False
    passed: int = 0
    granted: int = 0

    @property
    def items(self) -> list[Item]:
        """All examples that are left, in one order, whatever order they came in."""
        self.drop_lost()
        found = []
        for kept in sorted(self.by_number.values(), key=lambda kept: kept.identity):
            reference = kept.reference()
            if reference is not None:
                found.append((kept.identity, Example(kept.predicted, reference)))
        return found

    @property
    def key(self) -> list[Identity]:
        """The identities of all examples, also of those that are gone."""
        return sorted(kept.identity for kept in self.by_number.values())

    def number_like(self, content: Content) -> int | None:
        """The number of an example that is made anew in each epoch, with the same content."""
        numbers = self.numbers_of.get(content)
        if not numbers:
            return None
        numbers.append(numbers.pop(0))
        return numbers[-1]

    def drop_lost(self) -> None:
        """Forget examples that are gone."""
        for number, kept in list(self.by_number.items()):
            if kept.reference() is None:
                self.lost_some = True
                self.numbers_of[kept.identity[1:]].remove(number)
                self.size -= len(kept.predicted)
                del self.by_number[number]

    def loosen(self) -> None:
        """Keep no doc alive that others drop: these examples are learned."""
        for kept in self.by_number.values():
            kept.own = None

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
            self.owes |= before is None or before.identity != identity
            self.size += len(example.predicted)
            if before is not None:
                self.size -= len(before.predicted)
                self.numbers_of[before.identity[1:]].remove(identity[0])
            self.numbers_of.setdefault(identity[1:], []).append(identity[0])
            reference = example.reference
            self.by_number[identity[0]] = Kept(
                identity, example.predicted, ref(reference), reference
            )
        self.passed += n_tokens(items)

    def rounds_due(self, rounds: int) -> int:
        """How many rounds to train now, if all tokens once are worth so many rounds."""
        due = max(0, self.passed * rounds // max(1, self.size) - self.granted)
        self.granted += due
        return due
