"""Accuracy and confusion of label sequences; a gold label of None is not annotated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Label = str | None
LabelSequence = Sequence[Label]


@dataclass(frozen=True)
class Share:
    """How many of how many."""

    right: int
    total: int

    @property
    def value(self) -> float | None:
        """None if there is nothing to count: neither good nor bad."""
        return self.right / self.total if self.total else None


def check_aligned(gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]) -> None:
    """Refuse sequences that do not belong together."""
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
    """Right labels among the annotated positions of one sequence."""
    known = [(a, b) for a, b in zip(gold, predicted, strict=True) if a is not None]
    return Share(sum(a == b for a, b in known), len(known))


def token_accuracy(
    gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]
) -> float | None:
    """Share of the annotated positions whose label is right."""
    check_aligned(gold, predicted)
    shares = [token_share(a, b) for a, b in zip(gold, predicted, strict=True)]
    return Share(sum(s.right for s in shares), sum(s.total for s in shares)).value


def sequence_accuracy(
    gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]
) -> float | None:
    """Share of the sequences without a wrong label, among those that are annotated anywhere."""
    check_aligned(gold, predicted)
    shares = [token_share(a, b) for a, b in zip(gold, predicted, strict=True)]
    known = [share for share in shares if share.total]
    return Share(sum(share.right == share.total for share in known), len(known)).value


@dataclass(frozen=True)
class Confusion:
    """How often each gold label got each predicted one."""

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
        """(gold, predicted, count) of the most frequent mistakes."""
        wrong = [(a, b, count) for (a, b), count in self.counts.items() if a != b]
        return sorted(wrong, key=lambda mistake: (-mistake[2], mistake[:2]))[:n]

    def table(self, labels: Sequence[str]) -> list[list[int]]:
        """Rows are gold labels, columns predicted ones."""
        return [[self.counts[gold, predicted] for predicted in labels] for gold in labels]


def confusion(gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]) -> Confusion:
    check_aligned(gold, predicted)
    counts: Counter[tuple[str, str]] = Counter()
    for a, b in zip(gold, predicted, strict=True):
        counts.update((x, str(y)) for x, y in zip(a, b, strict=True) if x is not None)
    return Confusion(counts)
