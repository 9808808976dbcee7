"""Settings of a training, each checked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD, METHODS
from spacy_treecrf.engine.folder_setting import folder_field
from spacy_treecrf.engine.limits import CONSTRAINTS, MAX_LEAVES, MAX_ORDER
from spacy_treecrf.engine.rules.rule_setting import rules_field
from spacy_treecrf.engine.setting import (
    SettingsBase,
    Word,
    boolean,
    choice,
    integer,
    number,
    refused,
)

# The joint family holds a score for every label after every context, at each position.
MAX_POTENTIALS = 2**20
# Up to this many labels "auto" takes the joint family: its cost grows with their square.
AUTO_JOINT_LABELS = 8
# Unless told otherwise a model gets about so many trees, in so many rounds at least and at most:
# a round costs one tree for each label, so few labels can afford more rounds.
AUTO_TREES = 900
FEWEST_ROUNDS, MOST_ROUNDS = 40, 150
MAX_ROUNDS = 10**6
MAX_BEAM = 2**15
MAX_ROWS = 2**31 - 1


@dataclass(frozen=True)
class Settings(SettingsBase):
    """What to learn and how; the docstring of `BoostedCRF` says more about each setting."""

    family: str = choice(
        "auto",
        "How scores depend on the previous label: by one matrix (separate) or in trees (joint).",
        ("auto", "separate", "joint"),
    )
    order: int = integer(
        1, "Number of previous labels that a label depends on.", low=0, high=MAX_ORDER
    )
    step: str = choice(
        "newton",
        "How a round improves the likelihood: by second or first order, or conjugate gradients.",
        ("newton", "gradient", "conjugate"),
    )
    gamma: str = choice(
        "local",
        "How newton bounds the curvature: by positions (local) or the mixing rate too (mixing).",
        ("local", "mixing"),
    )
    rounds: int | None = integer(
        None,
        "Number of boosting rounds in all.",
        low=0,
        high=MAX_ROUNDS,
        words=[
            Word(None, f"{FEWEST_ROUNDS} to {MOST_ROUNDS}, by the number of labels", decided=True)
        ],
    )
    linear_rounds: int = integer(
        5, "Number of rounds, at the beginning, that are linear.", low=0, high=MAX_ROUNDS
    )
    pseudo_rounds: int = integer(
        0,
        "Number of rounds, at the beginning, that follow the pseudo-likelihood.",
        low=0,
        high=MAX_ROUNDS,
    )
    leaves: int = integer(64, "Most leaves that a tree may have.", low=1, high=MAX_LEAVES)
    depth: int = integer(0, "Most levels that a tree may have; 0 is no limit.", low=0, high=10**6)
    min_rows: int = integer(3, "Number of rows that each leaf must hold.", low=1, high=MAX_ROWS)
    min_count: int = integer(
        2, "Number of rows that a feature needs to be used.", low=1, high=MAX_ROWS
    )
    max_bins: int = integer(255, "Most bins of a numeric column.", low=2, high=255)
    penalty: float = number(1.0, "Quadratic penalty on leaf values.", low=0.0)
    min_gain: float = number(0.0, "Fall of the loss that a split must bring.", low=0.0)
    ridge: float = number(
        1.0, "Quadratic penalty on linear weights and transitions.", low=0.0, above=True
    )
    shrinkage: float = number(0.6, "Factor on every tree.", low=1e-6, high=1e3)
    max_step: float = number(3.0, "Bound of a leaf value under newton.", low=1e-6, high=1e3)
    trim: float = number(
        0.1,
        "Share of the gradient's sum that trees may ignore in their least important rows.",
        low=0.0,
        high=0.99,
    )
    subsample: float = number(
        1.0, "Share of the rows that is drawn in each round.", low=0.0, high=1.0, above=True
    )
    colsample: float = number(
        1.0, "Share of the columns that is drawn for each tree.", low=0.0, high=1.0, above=True
    )
    node_colsample: float = number(
        1.0, "Share of the columns that is drawn for each node.", low=0.0, high=1.0, above=True
    )
    word_dropout: float = number(
        0.0,
        "Share of the training rows that see rare values, such as words, as unknown.",
        low=0.0,
        high=0.9,
        older=0.0,
    )
    line_search: bool = boolean(
        False, "Whether every round is scaled to the best of several step lengths."
    )
    beam: int | None = integer(
        None,
        "Number of labels that are followed at each position.",
        low=1,
        high=MAX_BEAM,
        words=[Word(None, "exact inference")],
    )
    unbiased: bool = boolean(
        False, "Whether trees take the observed label more seriously than all others."
    )
    unbiased_rate: float = number(
        0.007, "How fast the extra weight of the observed label falls (c).", low=0.0, high=1e3
    )
    unbiased_exponent: float = number(
        2.0,
        "Power of the round in the fall of the extra weight (b).",
        low=0.0,
        high=10.0,
        above=True,
    )
    missing: str = choice(ABSENT_METHOD, "What a missing value means.", METHODS)
    constraints: str = choice("none", "Which transitions are possible at all.", CONSTRAINTS)
    rules: Sequence[str] | None = rules_field(
        "Rules that the labels of a predicted sequence follow as a whole."
    )
    predictor: str = choice(
        "viterbi",
        "What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).",
        ("viterbi", "marginal"),
    )
    soft_labels: str = choice(
        "evidence",
        "What weights of labels mean: noisy measurements (evidence), a distribution (distill).",
        ("evidence", "distill"),
        older="evidence",
    )
    patience: int = integer(
        10,
        "Number of rounds without a better held-out figure before training stops; 0 is never.",
        low=0,
        high=10**6,
    )
    monitor: str = choice(
        "auto",
        "Held-out figure that decides when to stop and which round is the best.",
        ("auto", "f1", "accuracy", "log_likelihood"),
    )
    threads: int = integer(
        0,
        "Number of threads, which never changes the result; 0 means all cores.",
        low=0,
        high=1024,
        of_the_run=True,
    )
    spill: str | None = folder_field(
        "Folder for arrays of the rows in training, if they do not fit into memory."
    )
    seed: int = integer(0, "Seed of all random draws.", low=0, high=2**63 - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beam is not None and (self.family == "joint" or self.order != 1):
            raise refused(
                "beam", self.beam, "None unless family is 'separate' (or 'auto') and order is 1"
            )
        if self.beam is not None and self.gamma != "local":
            raise refused("gamma", self.gamma, "'local' with a beam: mixing needs all states")
        if self.family == "separate" and self.order > 1:
            raise refused(
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
            rounds = min(max(AUTO_TREES // n_labels, FEWEST_ROUNDS), MOST_ROUNDS)
        return replace(self, family=family, rounds=rounds)

    def check_labels(self, n_labels: int) -> None:
        """Refuse a chain whose contexts would not fit into memory."""
        if n_labels ** (self.context_order + 1) > MAX_POTENTIALS:
            raise ValueError(
                f"treecrf: {n_labels} labels with family='joint', order={self.order} are "
                f"{n_labels}**{self.order + 1} potentials at each position; lower the order, or "
                "use family='separate'"
            )
