"""Sequences of a hidden Markov model with more or less sharp observations and transitions.

This is the model by which Hao and Fern (2007) compared output codes. A label shows its own
observation with probability p_o, else one of k_o others; it is followed by itself with probability
p_l, else by one of k_l others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits


@dataclass(frozen=True)
class Synthetic:
    """A hidden Markov model, which depends on its parameters and seed alone.

    n_labels, n_observations: Label i has observation i modulo n_observations as its own.
    """

    n_labels: int = 40
    n_observations: int = 40
    p_o: float = 0.2
    k_o: int = 8
    p_l: float = 0.6
    k_l: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("p_o", self.p_o), ("p_l", self.p_l)):
            if not 0 <= value <= 1:
                raise ValueError(f"treecrf: {name} is {value}; use a probability from 0 to 1")
        for name, few, many in (
            ("k_o", self.k_o, self.n_observations),
            ("k_l", self.k_l, self.n_labels),
        ):
            if not 1 <= few < many:
                raise ValueError(
                    f"treecrf: {name} is {few}; use a whole number from 1 to {many - 1}: others "
                    f"than its own among {many}"
                )

    def sample(self, n: int, length: int = 15, stream: str = "train") -> list[LabelledSequence]:
        """n sequences; they depend on the model, and on the stream."""
        shown, followed = self.neighbours()
        rng = random.Random(f"{self.seed} {stream}")
        sequences = []
        for i in range(n):
            words, labels = [], []
            label = rng.randrange(self.n_labels)
            for _ in range(length):
                own = label % self.n_observations
                word = own if rng.random() < self.p_o else rng.choice(shown[label])
                words.append(f"o{word}")
                labels.append(f"l{label}")
                label = label if rng.random() < self.p_l else rng.choice(followed[label])
            sequences.append(LabelledSequence(words, {"tag": labels}, key=f"{stream} {i}"))
        return sequences

    def neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The other observations that each label shows, and the other labels that follow it."""
        rng = random.Random(f"{self.seed} model")
        shown, followed = [], []
        for label in range(self.n_labels):
            own = label % self.n_observations
            others = [o for o in range(self.n_observations) if o != own]
            shown.append(rng.sample(others, self.k_o))
            others = [other for other in range(self.n_labels) if other != label]
            followed.append(rng.sample(others, self.k_l))
        return shown, followed


# In "transition" transitions tell much and observations little; in "both" both tell much.
SETTINGS = {
    "transition": Synthetic(p_o=0.2, k_o=8, p_l=0.6, k_l=2),
    "both": Synthetic(p_o=0.6, k_o=2, p_l=0.6, k_l=2),
}
SIZES = {"train": 500, "dev": 100, "test": 500}


def synthetic_model(setting: str, seed: int = 0, **changes: Any) -> Synthetic:
    """The model of a named setting, with `changes` of its parameters."""
    if setting not in SETTINGS:
        raise ValueError(
            f"treecrf: setting is {setting!r}; use one of {', '.join(map(repr, SETTINGS))}"
        )
    return replace(SETTINGS[setting], seed=seed, **changes)


def synthetic_splits(setting: str, seed: int, **changes: Any) -> Splits:
    model = synthetic_model(setting, seed, **changes)
    return {part: model.sample(n, stream=part) for part, n in SIZES.items()}
