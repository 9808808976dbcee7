"""Sequences of bits whose labels depend on what comes later (Hao 2009, section 5.4.1).

The local label of a position is 1 if at least 4 of its first 6 bits are; the bag label is 1 if
one of the next positions has at most 1 of them. The last 2 bits are noise. The bag ends where
the sequence does, so that a last position has the bag label 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits

N_BITS = 8
N_USED = 6
AT_LEAST = 4  # bits of a position whose local label is 1
AT_MOST = 1  # bits of a position that makes bags positive
LAYER = "label"

# The label of a position, from how many of its used bits are set and the label of its bag.
PROBLEMS: dict[str, Callable[[int, bool], bool]] = {
    "xor": lambda n, bag: (n >= AT_LEAST) != bag,
    "or": lambda n, bag: n >= AT_LEAST or bag,
    "extra": lambda n, bag: n + bag >= AT_LEAST,
}
SIZES = {"train": 400, "dev": 200, "test": 100}


@dataclass(frozen=True)
class FutureBits:
    """A problem on sequences of bits.

    problem: "xor", "or" or "extra".
    bag: How many of the next positions count.
    """

    problem: str
    length: int = 30
    bag: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        if self.problem not in PROBLEMS:
            known = ", ".join(map(repr, PROBLEMS))
            raise ValueError(f"treecrf: problem is {self.problem!r}; use one of {known}")
        for name, value in (("length", self.length), ("bag", self.bag)):
            if value < 1:
                raise ValueError(f"treecrf: {name} is {value}; use 1 or more")

    def sample(self, n: int, stream: str = "train") -> list[LabelledSequence]:
        """n sequences: words are the bits as text, labels "0" and "1" in the layer "label"."""
        rng = random.Random(f"{self.problem} {self.seed} {stream}")
        return [self._sequence(rng, f"{stream} {i}") for i in range(n)]

    def _sequence(self, rng: random.Random, key: str) -> LabelledSequence:
        words = [format(rng.getrandbits(N_BITS), f"0{N_BITS}b") for _ in range(self.length)]
        used = [word[:N_USED].count("1") for word in words]
        label_of = PROBLEMS[self.problem]
        labels = []
        for t, n in enumerate(used):
            bag = any(other <= AT_MOST for other in used[t + 1 : t + 1 + self.bag])
            labels.append(str(int(label_of(n, bag))))
        return LabelledSequence(words, {LAYER: labels}, key=key)


def future_bits_splits(problem: str, seed: int) -> Splits:
    """The published split: 400 sequences for training, 200 held out, 100 for testing."""
    model = FutureBits(problem, seed=seed)
    return {part: model.sample(n, stream=part) for part, n in SIZES.items()}


def bit_features(sequence: LabelledSequence) -> list[dict[str, Any]]:
    """Feature dicts for an estimator: x1 .. x8, for each bit that is set."""
    return [{f"x{i}": True for i, bit in enumerate(w, 1) if bit == "1"} for w in sequence.words]
