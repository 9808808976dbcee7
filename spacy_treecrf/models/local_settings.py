"""Settings of locally normalised models, each checked by name."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from spacy_treecrf.engine.chain import MAX_ORDER
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.noisy_or import TO_THE_END
from spacy_treecrf.engine.settings import MAX_POTENTIALS, Settings

STEPS = ("newton", "gradient")
SEARCHES = ("auto", "exact", "greedy", "beam")
MAX_WIDTH = 4096
# "auto" decodes exactly up to so many scores at each position (n_labels ** (order + 1)).
AUTO_EXACT = 2**12
FUTURE_ROUNDS = 300
MAX_STEP = 1e6  # that a line search may be allowed

SettingsT = TypeVar("SettingsT", bound="LocalSettings")


@dataclass(frozen=True)
class LocalSettings:
    """What all of them have; `BoostedMEMM` documents it."""

    # What a model is, and remains when training goes on.
    KEPT: ClassVar[tuple[str, ...]] = ("order", "right_to_left", "constraints")

    order: int = 1
    right_to_left: bool = False
    search: str = "auto"
    beam_width: int = 8
    step: str = "newton"
    rounds: int | None = None
    leaves: int = 64
    depth: int = 0
    min_rows: int = 3
    min_count: int = 2
    max_bins: int = 255
    penalty: float = 1.0
    min_gain: float = 0.0
    max_step: float = 3.0
    trim: float = 0.1
    subsample: float = 1.0
    colsample: float = 1.0
    node_colsample: float = 1.0
    constraints: str = "none"
    predictor: str = "viterbi"
    patience: int = 10
    dev_share: float = 0.2
    threads: int = 0
    seed: int = 0

    @property
    def missing(self) -> str:
        """A missing value is as if it was not mentioned."""
        return "absent"

    def __post_init__(self) -> None:
        # what boosting knows as well is checked, and made plain numbers, by its own settings
        boosting = self.boosting
        for name in Settings.names():
            if name in self.names() and name not in ("order", "family"):
                object.__setattr__(self, name, getattr(boosting, name))
        if self.step not in STEPS:
            raise self._bad("step", "one of " + ", ".join(map(repr, STEPS)))
        self._check_integer("order", 0, MAX_ORDER)
        self._check_boolean("right_to_left")
        if not isinstance(self.search, str) or self.search not in SEARCHES:
            raise self._bad("search", "one of " + ", ".join(map(repr, SEARCHES)))
        self._check_integer("beam_width", 1, MAX_WIDTH)
        self._check_number("dev_share", 0.0, 0.9)

    @property
    def boosting(self) -> Settings:
        """Those of the local model: independent positions that see their previous labels."""
        shared = {n: getattr(self, n) for n in Settings.names() if n in self.names()}
        return Settings(**{**shared, "family": "separate", "order": 0})

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    def resolved(self: SettingsT, n_labels: int) -> SettingsT:
        """The same with the number of rounds decided."""
        return replace(self, rounds=self.boosting.resolved(n_labels).rounds)

    def width(self, n_labels: int) -> int:
        """Of the beam; 0: exact decoding."""
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

    def _check_integer(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not low <= value <= high:
            raise self._bad(name, f"an integer from {low} to {high}")
        object.__setattr__(self, name, int(value))

    def _check_number(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not low <= value <= high or not math.isfinite(value):
            raise self._bad(name, f"a number from {low:g} to {high:g}")
        object.__setattr__(self, name, float(value))

    def _check_boolean(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, (bool, np.bool_)):
            raise self._bad(name, "True or False")
        object.__setattr__(self, name, bool(value))

    def _bad(self, name: str, expected: str) -> ValueError:
        return ValueError(f"treecrf: setting {name!r} is {getattr(self, name)!r}; use {expected}")


@dataclass(frozen=True)
class MEMMSettings(LocalSettings):
    linear_rounds: int = 5
    ridge: float = 1.0
    shrinkage: float = 0.6
    line_search: bool = False
    monitor: str = "log_likelihood"


@dataclass(frozen=True)
class FutureSettings(LocalSettings):
    """`FutureFeatureMEMM` documents it."""

    KEPT: ClassVar[tuple[str, ...]] = (*LocalSettings.KEPT, "bag")

    bag: int | None = None
    step: str = "gradient"
    leaves: int = 10
    trim: float = 0.0
    patience: int = 3
    detector_start: float = -5.0
    detector_rounds: int = 10
    max_alpha: float = 40.0
    max_beta: float = 1e4
    max_eta: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bag is not None:
            value = self.bag
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or not 1 <= value < TO_THE_END:
                raise self._bad(
                    "bag",
                    "1 or more future positions, or None for all to the end; BoostedMEMM is the "
                    "model that looks at none",
                )
            object.__setattr__(self, "bag", int(value))
        self._check_number("detector_start", -100.0, 100.0)
        self._check_integer("detector_rounds", 1, 10**6)
        for name in ("max_alpha", "max_beta", "max_eta"):
            self._check_number(name, 1e-6, MAX_STEP)

    @property
    def bag_size(self) -> int:
        return TO_THE_END if self.bag is None else self.bag

    def resolved(self, n_labels: int) -> FutureSettings:
        return replace(self, rounds=FUTURE_ROUNDS if self.rounds is None else self.rounds)


def settings_state(settings: LocalSettings) -> dict[str, Any]:
    return asdict(settings)


def read_settings(fields_: Fields, kind: type[SettingsT]) -> SettingsT:
    """Settings out of a model file; which values are right, they check by themselves."""
    values: dict[str, Any] = {}
    defaults = {field.name: field.default for field in fields(kind)}
    for name, default in defaults.items():
        if name in ("rounds", "bag") and fields_.is_none(name):
            values[name] = None
        elif isinstance(default, bool):
            values[name] = fields_.boolean(name)
        elif isinstance(default, float):
            values[name] = fields_.number(name)
        elif isinstance(default, str):
            values[name] = fields_.string(name)
        else:
            values[name] = fields_.integer(name)
    if values["rounds"] is None:
        fields_.fail("rounds", "an integer", "nothing (None)")
    fields_.done()
    return kind(**values)
