"""Accuracy and confusion of label sequences; a gold label of None is not annotated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spacy_treecrf.labels.biluo import Label

LabelSequence = Sequence[Label]


@dataclass(frozen=True)
class Share:
    """How many of how many items."""

    right: int
    total: int

    @property
    def value(self) -> float | None:
        """The share as a number; None if there is nothing to count."""
        return self.right / self.total if self.total else None


def check_aligned(gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]) -> None:
    """Refuse gold and predicted sequences that do not belong together."""
    if len(gold) != len(predicted):
        raise ValueError(
            f"treecrf: {len(gold)} gold sequences and {len(predicted)} predicted ones; pass one "
            "prediction for each sequence"
        )
    for s, (a, b) in enumerate(zip(gold, predicted, strict=True)):
        if len(a) != len(b):
            raise ValueError(
                f"treecrf: sequence {s} has {len(a)} gold labels and {len(b)} predicted ones; "
                "pass one label for each position"
            )


def token_share(gold: LabelSequence, predicted: LabelSequence) -> Share:
    """The share of right labels among the annotated positions of one sequence."""
    known = [(a, b) for a, b in zip(gold, predicted, strict=True) if a is not None]
    return Share(sum(a == b for a, b in known), len(known))


@dataclass(frozen=True)
class Confusion:
    """How often each gold label was predicted as each label."""

    counts: Counter[tuple[str, str]]  # (gold, predicted)

    @property
    def labels(self) -> list[str]:
        """All labels, the most frequent in the gold annotation first."""
        of_gold: Counter[str] = Counter()
        for (gold, predicted), n in self.counts.items():
            of_gold[gold] += n
            of_gold[predicted] += 0
        return sorted(of_gold, key=lambda label: (-of_gold[label], label))

    def mistakes(self, n: int | None = None) -> list[tuple[str, str, int]]:
        """The n most frequent mistakes, as (gold, predicted, count)."""
        wrong = [(a, b, count) for (a, b), count in self.counts.items() if a != b]
        return sorted(wrong, key=lambda mistake: (-mistake[2], mistake[:2]))[:n]

    def table(self, labels: Sequence[str]) -> list[list[int]]:
        """The counts as a table: rows are gold labels, columns predicted ones."""
        return [[self.counts[gold, predicted] for predicted in labels] for gold in labels]


def confusion(gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]) -> Confusion:
    check_aligned(gold, predicted)
    counts: Counter[tuple[str, str]] = Counter()
    for a, b in zip(gold, predicted, strict=True):
        counts.update((x, str(y)) for x, y in zip(a, b, strict=True) if x is not None)
    return Confusion(counts)
