"""Settings of output coding, each checked by name and against the others."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.missing import IN_TREES
from spacy_treecrf.engine.settings import (
    CHOICES,
    Settings,
    check_beam,
    check_integer,
)
from spacy_treecrf.models import codes
from spacy_treecrf.models.crf import read_settings
from spacy_treecrf.models.perceptron_settings import (
    PerceptronSettings,
    read_perceptron_settings,
)

Base = Settings | PerceptronSettings

TRAININGS = ("auto", "joint", "columns")
DECODINGS = ("joint", *codes.DECODINGS)
CASCADES = ("cross_fitted", "training")
ALL = "all"
AUTO = "auto"
# From so many labels on, "auto" trains inside a beam of so many.
AUTO_BEAM_LABELS = 200
AUTO_BEAM = 16
# Rounds of joint training: the more labels, the more each of them costs.
ROUNDS_TIMES_LABELS = 3600
JOINT_ROUNDS = (12, 40)
COLUMN_ROUNDS = 30

_CHOICES = {
    "code": codes.KINDS,
    "training": TRAININGS,
    "decoding": DECODINGS,
    "cascade": CASCADES,
    "constraints": CHOICES["constraints"],
    "predictor": CHOICES["predictor"],
}
_INTEGERS = {"folds": (2, 100), "threads": (0, 1024), "seed": (0, 2**63 - 1)}
# What bits have no use for, and the one value that each of these may have: in any training, and
# in joint training.
_ALWAYS: dict[str, Any] = {"constraints": "none", "beam": None}
_JOINT: dict[str, Any] = {
    "order": 1,
    "step": "newton",
    "gamma": "local",
    "pseudo_rounds": 0,
    "line_search": False,
    "unbiased": False,
}


@dataclass(frozen=True)
class SECOCSettings:
    """What to learn and how; `SECOCCRF` documents each of them."""

    bits: int | None = None
    code: str = "random"
    training: str = AUTO
    history: int | str = 0
    cascade: str = "cross_fitted"
    decoding: str = "joint"
    folds: int = 5
    beam: int | str | None = AUTO
    constraints: str = "none"
    predictor: str = "viterbi"
    threads: int = 0
    seed: int = 0
    base: Base = field(default_factory=Settings)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise _bad(name, value, "one of " + ", ".join(map(repr, choices)))
        for name, (low, high) in _INTEGERS.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), low, high))
        if self.bits is not None:
            object.__setattr__(self, "bits", check_integer("bits", self.bits, 1, codes.MAX_BITS))
        if self.history != ALL:
            try:
                history = check_integer("history", self.history, 0, codes.MAX_BITS)
            except ValueError:
                raise _bad("history", self.history, f"an integer from 0 on, or {ALL!r}") from None
            object.__setattr__(self, "history", history)
        if self.beam != AUTO:
            check_beam(self.beam)
        self._check_base()
        if self.training == AUTO:
            base = self.base
            together = self.history == 0 and self.decoding == "joint"
            together = together and isinstance(base, Settings) and base.family != "joint"
            together = together and all(getattr(base, n) == v for n, v in _JOINT.items())
            object.__setattr__(self, "training", "joint" if together else "columns")
        self._check_together()

    @property
    def order(self) -> int:
        """Of the chain over labels: the published decodings look at each position alone."""
        return 1 if self.decoding == "joint" else 0

    @property
    def rounds(self) -> int | None:
        """Of joint training those of the base; else a round learns one column."""
        return self.base.rounds if self.training == "joint" else self.bits

    @property
    def min_count(self) -> int:
        return self.base.min_count

    @property
    def max_bins(self) -> int:
        return self.base.max_bins

    @property
    def missing(self) -> str:
        return self.base.missing

    @property
    def patience(self) -> int:
        return self.base.patience

    def n_history(self, column: int) -> int:
        """How many earlier columns a column sees."""
        return column if self.history == ALL else min(column, int(self.history))

    def training_beam(self, n_labels: int) -> int | None:
        if self.beam == AUTO:
            return AUTO_BEAM if n_labels >= AUTO_BEAM_LABELS else None
        return None if self.beam is None else int(self.beam)

    @property
    def prediction_beam(self) -> int | None:
        """Only one that was asked for: "auto" predicts exactly."""
        return None if self.beam in (AUTO, None) else int(self.beam or 0)

    def resolved(self, n_labels: int) -> SECOCSettings:
        """The same with what depends on the number of labels decided."""
        bits = codes.check_bits(self.code, n_labels, self.bits)
        base = self.base
        if isinstance(base, PerceptronSettings):
            base = base.resolved()
        else:
            joint = min(max(ROUNDS_TIMES_LABELS // n_labels, JOINT_ROUNDS[0]), JOINT_ROUNDS[1])
            rounds = joint if self.training == "joint" else COLUMN_ROUNDS
            base = replace(base, rounds=rounds if base.rounds is None else base.rounds)
            if self.training == "joint":
                base = replace(base, family="separate")
            base = base.resolved(2)  # the labels of a bit
        return replace(self, bits=bits, base=base)

    def changed(self, **settings: Any) -> SECOCSettings:
        """Some settings changed; those of the base by their own names."""
        own = {name for name in self.names() if name != "base"}
        mine = {name: value for name, value in settings.items() if name in own}
        rest = {name: value for name, value in settings.items() if name not in own}
        return replace(self, **mine, base=replace(self.base, **rest))

    @classmethod
    def names(cls) -> list[str]:
        return [f.name for f in fields(cls)]

    def _check_base(self) -> None:
        base = self.base
        if not isinstance(base, (Settings, PerceptronSettings)):
            raise _bad("base", base, "a boosted CRF or a perceptron")
        if isinstance(base, PerceptronSettings):
            if base.method != "averaged":
                raise _bad("base.method", base.method, "'averaged': bits need scores, not votes")
            if base.constraints != "none":
                raise _bad("base.constraints", base.constraints, "'none', and SECOC's own instead")
            return
        if base.order > 1:
            raise _bad("base.order", base.order, "0 or 1")
        if base.missing in IN_TREES:
            raise _bad(
                "base.missing", base.missing, "one that is part of the encoding, not of trees"
            )
        for name, value in _ALWAYS.items():
            if getattr(base, name) != value:
                raise _bad(
                    f"base.{name}", getattr(base, name), f"{value!r}, and that of the output code"
                )

    def _check_together(self) -> None:
        if self.training == "joint":
            if self.history != 0:
                raise _bad(
                    "history",
                    self.history,
                    "0 with training='joint', whose columns learn together; a cascade needs "
                    "training='columns'",
                )
            if self.decoding != "joint":
                raise _bad(
                    "decoding", self.decoding, "'joint' with training='joint', else 'columns'"
                )
            if isinstance(self.base, PerceptronSettings):
                raise _bad("training", self.training, "'columns' with a perceptron as the base")
            if self.base.family == "joint":
                raise _bad("base.family", "joint", "'auto' or 'separate' with training='joint'")
            for name, value in _JOINT.items():
                if getattr(self.base, name) != value:
                    raise _bad(
                        f"base.{name}", getattr(self.base, name), f"{value!r} with training='joint'"
                    )
        if self.order == 0 and self.constraints != "none":
            raise _bad(
                "constraints",
                self.constraints,
                f"'none' with decoding={self.decoding!r}, which has no transitions to constrain",
            )


def read_secoc_settings(reader: Fields) -> SECOCSettings:
    values: dict[str, Any] = {name: reader.string(name) for name in _CHOICES}
    values |= {name: reader.integer(name) for name in _INTEGERS}
    values["bits"] = reader.integer("bits")
    history = reader.integer("history", -1, codes.MAX_BITS)
    values["history"] = ALL if history < 0 else history
    beam = reader.integer("beam", -1, 2**31 - 1)
    values["beam"] = {-1: AUTO, 0: None}.get(beam, beam)
    base = reader.fields("base")
    learner = reader.string("learner", choices=("boosted", "perceptron"))
    values["base"] = read_settings(base) if learner == "boosted" else read_perceptron_settings(base)
    reader.done()
    return SECOCSettings(**values)


def secoc_settings_state(settings: SECOCSettings) -> dict[str, Any]:
    state = {name: getattr(settings, name) for name in SECOCSettings.names()}
    base = settings.base
    beam: dict[Any, int] = {AUTO: -1, None: 0}
    return {
        **state,
        "history": -1 if settings.history == ALL else settings.history,
        "beam": beam.get(settings.beam, settings.beam),
        "base": {name: getattr(base, name) for name in type(base).names()},
        "learner": "boosted" if isinstance(base, Settings) else "perceptron",
    }


def _bad(name: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"treecrf: setting {name!r} is {value!r}; use {expected}")
