"""Settings of locally normalised models, each checked by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from spacy_treecrf.engine.boosting.settings import MAX_POTENTIALS, MAX_ROUNDS, Settings
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD
from spacy_treecrf.engine.limits import TO_THE_END
from spacy_treecrf.engine.setting import SettingsBase, Word, boolean, choice, integer, like, number

MAX_WIDTH = 4096
# "auto" decodes exactly up to so many scores at each position (n_labels ** (order + 1)).
AUTO_EXACT = 2**12
FUTURE_ROUNDS = 300
MAX_STEP = 1e6  # that a line search may be allowed

LocalSettingsT = TypeVar("LocalSettingsT", bound="LocalSettings")


@dataclass(frozen=True)
class LocalSettings(SettingsBase):
    """What all of them have; the docstring of `BoostedMEMM` says more about each setting."""

    # What a model is, and remains when training goes on.
    KEPT: ClassVar[tuple[str, ...]] = ("order", "right_to_left", "constraints")

    order: int = like(Settings, "order")
    right_to_left: bool = boolean(False, "Whether sequences are read from their ends.")
    search: str = choice(
        "auto", "How the best labels are looked for.", ("auto", "exact", "greedy", "beam")
    )
    beam_width: int = integer(
        8, "Number of label histories that a beam keeps.", low=1, high=MAX_WIDTH
    )
    step: str = like(
        Settings,
        "step",
        choices=("newton", "gradient"),
        help="How a round improves the likelihood: by second or by first order.",
    )
    rounds: int | None = like(Settings, "rounds")
    leaves: int = like(Settings, "leaves")
    depth: int = like(Settings, "depth")
    min_rows: int = like(Settings, "min_rows")
    min_count: int = like(Settings, "min_count")
    max_bins: int = like(Settings, "max_bins")
    penalty: float = like(Settings, "penalty")
    min_gain: float = like(Settings, "min_gain")
    max_step: float = like(Settings, "max_step")
    trim: float = like(Settings, "trim")
    subsample: float = like(Settings, "subsample")
    colsample: float = like(Settings, "colsample")
    node_colsample: float = like(Settings, "node_colsample")
    constraints: str = like(Settings, "constraints")
    predictor: str = like(Settings, "predictor")
    patience: int = like(Settings, "patience")
    dev_share: float = number(
        0.2,
        "Share of the sequences that is held out where no held-out part is given.",
        low=0.0,
        high=0.9,
    )
    threads: int = like(Settings, "threads")
    seed: int = like(Settings, "seed")

    @property
    def missing(self) -> str:
        """A missing value is as if it was not mentioned."""
        return ABSENT_METHOD

    @property
    def boosting(self) -> Settings:
        """Settings of boosting independent positions that see their previous labels."""
        known = Settings.settings()
        shared = {name: value for name, value in self.to_dict().items() if name in known}
        return Settings(**{**shared, "family": "separate", "order": 0})

    def resolved(self: LocalSettingsT, n_labels: int) -> LocalSettingsT:
        """The same with the number of rounds decided."""
        return replace(self, rounds=self.boosting.resolved(n_labels).rounds)

    def width(self, n_labels: int) -> int:
        """Width of the beam; 0 means exact decoding."""
        if self.search == "auto":
            return 0 if n_labels ** (self.order + 1) <= AUTO_EXACT else self.beam_width
        return {"exact": 0, "greedy": 1, "beam": self.beam_width}[self.search]

    def check_labels(self, n_labels: int) -> None:
        """Refuse exact decoding where scores would not fit into memory."""
        if self.width(n_labels) == 0 and n_labels ** (self.order + 1) > MAX_POTENTIALS:
            raise ValueError(
                f"treecrf: {n_labels} labels with order={self.order} are "
                f"{n_labels}**{self.order + 1} scores at each position, too many for setting "
                "'search' = 'exact'; use 'beam' or 'greedy', or lower the order"
            )


@dataclass(frozen=True)
class MEMMSettings(LocalSettings):
    """The docstring of `BoostedMEMM` says more about each setting."""

    linear_rounds: int = like(Settings, "linear_rounds")
    ridge: float = like(Settings, "ridge", help="Quadratic penalty on linear weights.")
    shrinkage: float = like(Settings, "shrinkage")
    line_search: bool = like(Settings, "line_search")
    monitor: str = like(Settings, "monitor")


@dataclass(frozen=True)
class FutureSettings(LocalSettings):
    """The docstring of `FutureFeatureMEMM` says more about each setting."""

    KEPT: ClassVar[tuple[str, ...]] = (*LocalSettings.KEPT, "bag")

    bag: int | None = integer(
        None,
        "Number of the next positions that detectors look at.",
        low=1,
        high=TO_THE_END - 1,
        words=[Word(None, "all to the end (BoostedMEMM looks at none)")],
    )
    step: str = like(
        LocalSettings,
        "step",
        default="gradient",
        help="How a round of trees over local features improves the likelihood.",
    )
    rounds: int | None = like(
        LocalSettings,
        "rounds",
        help="Number of rounds of both kinds in all.",
        words=(Word(None, str(FUTURE_ROUNDS), decided=True),),
    )
    leaves: int = like(LocalSettings, "leaves", default=10)
    trim: float = like(LocalSettings, "trim", default=0.0)
    patience: int = like(
        LocalSettings,
        "patience",
        default=3,
        help="Number of rounds of trees without a better held-out figure before detectors' turn.",
    )
    detector_start: float = number(
        -5.0,
        "Score of a detector (its log odds) before it has learned anything, G_0.",
        low=-100.0,
        high=100.0,
    )
    detector_rounds: int = integer(
        10, "Number of trees that a detector may have.", low=1, high=MAX_ROUNDS
    )
    max_alpha: float = number(
        40.0, "Upper bound of the line search for the step of trees.", low=1e-6, high=MAX_STEP
    )
    max_beta: float = number(
        1e4,
        "Upper bound of the line search for the step of detectors' trees.",
        low=1e-6,
        high=MAX_STEP,
    )
    max_eta: float = number(
        10.0,
        "Upper bound of the line search for what a detector adds to its label's score.",
        low=1e-6,
        high=MAX_STEP,
    )

    @property
    def bag_size(self) -> int:
        return TO_THE_END if self.bag is None else self.bag

    def resolved(self, n_labels: int) -> FutureSettings:
        return replace(self, rounds=FUTURE_ROUNDS if self.rounds is None else self.rounds)
