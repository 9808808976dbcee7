"""Settings of a training, each checked by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from spacy_treecrf.engine.chain import MAX_ORDER
from spacy_treecrf.engine.constraints import KINDS
from spacy_treecrf.engine.forest import MAX_LEAVES
from spacy_treecrf.engine.missing import ABSENT_METHOD, METHODS

CHOICES = {
    "family": ("auto", "separate", "joint"),
    "step": ("newton", "gradient", "conjugate"),
    "gamma": ("local", "mixing"),
    "missing": METHODS,
    "constraints": tuple(KINDS),
    "predictor": ("viterbi", "marginal"),
    "monitor": ("log_likelihood", "accuracy"),
}
# lowest and highest value
INTEGERS = {
    "order": (0, MAX_ORDER),
    "linear_rounds": (0, 10**6),
    "pseudo_rounds": (0, 10**6),
    "leaves": (1, MAX_LEAVES),
    "depth": (0, 10**6),
    "min_rows": (1, 2**31 - 1),
    "min_count": (1, 2**31 - 1),
    "max_bins": (2, 255),
    "patience": (0, 10**6),
    "threads": (0, 1024),
    "seed": (0, 2**63 - 1),
}
# lowest value, highest value, and whether the lowest itself is refused
NUMBERS = {
    "penalty": (0.0, math.inf, False),
    "min_gain": (0.0, math.inf, False),
    "ridge": (0.0, math.inf, True),
    "shrinkage": (1e-6, 1e3, False),
    "max_step": (1e-6, 1e3, False),
    "trim": (0.0, 0.99, False),
    "subsample": (0.0, 1.0, True),
    "colsample": (0.0, 1.0, True),
    "node_colsample": (0.0, 1.0, True),
    "unbiased_rate": (0.0, 1e3, False),
    "unbiased_exponent": (0.0, 10.0, True),
}
BOOLEANS = ("line_search", "unbiased")
# The joint family holds a score for every label after every context, at each position.
MAX_POTENTIALS = 2**20
# Up to this many labels "auto" takes the joint family: its cost grows with their square.
AUTO_JOINT_LABELS = 8
# Unless told otherwise a model gets about so many trees, in so many rounds at least and at most:
# a round costs one tree for each label, so few labels can afford more rounds.
AUTO_TREES = 900
AUTO_ROUNDS = (40, 150)
MAX_ROUNDS = 10**6
MAX_BEAM = 2**15


@dataclass(frozen=True)
class Settings:
    """What to learn and how; `BoostedCRF` documents each of them."""

    family: str = "auto"
    order: int = 1
    step: str = "newton"
    gamma: str = "local"
    rounds: int | None = None
    linear_rounds: int = 5
    pseudo_rounds: int = 0
    leaves: int = 64
    depth: int = 0
    min_rows: int = 3
    min_count: int = 2
    max_bins: int = 255
    penalty: float = 1.0
    min_gain: float = 0.0
    ridge: float = 1.0
    shrinkage: float = 0.6
    max_step: float = 3.0
    trim: float = 0.1
    subsample: float = 1.0
    colsample: float = 1.0
    node_colsample: float = 1.0
    line_search: bool = False
    beam: int | None = None
    unbiased: bool = False
    unbiased_rate: float = 0.007
    unbiased_exponent: float = 2.0
    missing: str = ABSENT_METHOD
    constraints: str = "none"
    predictor: str = "viterbi"
    patience: int = 10
    monitor: str = "log_likelihood"
    threads: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise _bad(name, value, "one of " + ", ".join(map(repr, choices)))
        for name, (low, high) in INTEGERS.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), low, high))
        for name, (lowest, highest, open_) in NUMBERS.items():
            value = getattr(self, name)
            good = _is_number(value) and lowest <= value <= highest and math.isfinite(value)
            if not good or (open_ and value == lowest):
                low_word = "above" if open_ else "from"
                raise _bad(name, value, f"a number {low_word} {lowest:g} to {highest:g}")
            object.__setattr__(self, name, float(value))
        for name in BOOLEANS:
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise _bad(name, value, "True or False")
            object.__setattr__(self, name, bool(value))
        if self.rounds is not None:
            if not _is_integer(self.rounds) or not 0 <= self.rounds <= MAX_ROUNDS:
                raise _bad("rounds", self.rounds, f"an integer from 0 to {MAX_ROUNDS}, or None")
            object.__setattr__(self, "rounds", int(self.rounds))
        check_beam(self.beam)
        if self.beam is not None and (self.family == "joint" or self.order != 1):
            raise _bad(
                "beam", self.beam, "None unless family is 'separate' (or 'auto') and order is 1"
            )
        if self.beam is not None and self.gamma != "local":
            raise _bad("gamma", self.gamma, "'local' with a beam: mixing needs all states")
        if self.family == "separate" and self.order > 1:
            raise _bad(
                "order", self.order, "0 or 1 with family='separate'; family='joint' goes up to 4"
            )

    @property
    def context_order(self) -> int:
        """How many previous labels the trees see."""
        return self.order if self.family == "joint" else 0

    def resolved(self, n_labels: int) -> Settings:
        """The same with what depends on the number of labels decided."""
        family, rounds = self.family, self.rounds
        if family == "auto":
            joint = self.order > 1 or n_labels <= AUTO_JOINT_LABELS
            joint = joint and self.beam is None
            family = "joint" if joint else "separate"
        if rounds is None:
            rounds = int(np.clip(AUTO_TREES // n_labels, *AUTO_ROUNDS))
        return replace(self, family=family, rounds=rounds)

    def check_labels(self, n_labels: int) -> None:
        """Refuse a chain whose contexts would not fit into memory."""
        if n_labels ** (self.context_order + 1) > MAX_POTENTIALS:
            raise ValueError(
                f"treecrf: {n_labels} labels with family='joint', order={self.order} are "
                f"{n_labels}**{self.order + 1} potentials at each position; lower the order, or "
                "use family='separate'"
            )

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def check_beam(beam: Any) -> None:
    """Refuse a beam that keeps nothing, and what is no beam."""
    if beam is not None and (not _is_integer(beam) or not 1 <= beam <= MAX_BEAM):
        raise _bad("beam", beam, f"an integer from 1 to {MAX_BEAM}, or None for exact inference")


def check_integer(name: str, value: Any, low: int, high: int) -> int:
    if not _is_integer(value) or not low <= value <= high:
        raise _bad(name, value, f"an integer from {low} to {high}")
    return int(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _bad(name: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"treecrf: setting {name!r} is {value!r}; use {expected}")
