"""Settings of output coding, each checked by name and against the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.codes import code_words
from spacy_treecrf.engine.encoding.missing_methods import IN_TREES
from spacy_treecrf.engine.setting import (
    Setting,
    SettingsBase,
    Word,
    choice,
    integer,
    like,
    made,
    refused,
    shown,
)
from spacy_treecrf.models.perceptron_settings import PerceptronSettings
from spacy_treecrf.storage.state_reader import StateReader

Base = Settings | PerceptronSettings

BASES: dict[str, type[Base]] = {"boosted": Settings, "perceptron": PerceptronSettings}
ALL = "all"
AUTO = "auto"
# From so many labels on, "auto" trains inside a beam of so many.
AUTO_BEAM_LABELS = 200
AUTO_BEAM = 16
# Rounds of joint training: the more labels, the more each of them costs.
ROUNDS_TIMES_LABELS = 3600
JOINT_ROUNDS = (12, 40)
COLUMN_ROUNDS = 30

# What bits have no use for, and the one value that each of these may have: in any training, and
# in joint training.
_ALWAYS: dict[str, Any] = {"constraints": "none", "rules": None, "beam": None}
_JOINT: dict[str, Any] = {
    "order": 1,
    "step": "newton",
    "gamma": "local",
    "pseudo_rounds": 0,
    "line_search": False,
    "unbiased": False,
}


@dataclass(frozen=True)
class Learner(Setting):
    """The settings of what learns a bit; a model file names its kind in a field of its own."""

    @property
    def type_text(self) -> str:
        return '{"boosted", "perceptron"} or estimator'

    @property
    def allowed(self) -> str:
        return "a boosted CRF or a perceptron"

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, (Settings, PerceptronSettings)):
            raise refused(name, value, self.allowed)
        return value

    def parse(self, text: str) -> Any:
        return BASES[text]() if text in BASES else text

    def read(self, name: str, reader: StateReader) -> Any:
        table = reader.nested(name)
        return BASES[reader.string("learner", choices=tuple(BASES))].from_state(table)

    def stored(self, name: str, value: Any) -> dict[str, Any]:
        return {name: value.to_state(), "learner": _learner(value)}

    def shown(self, value: Any) -> str:
        return shown(_learner(value))


def _learner(value: Base) -> str:
    return next(learner for learner, base in BASES.items() if isinstance(value, base))


@dataclass(frozen=True)
class SECOCSettings(SettingsBase):
    """What to learn and how; the docstring of `SECOCCRF` says more about each setting."""

    bits: int | None = integer(
        None,
        "Length of the code words.",
        low=1,
        high=code_words.MAX_BITS,
        words=[Word(None, "a length that suits the number of labels", decided=True)],
    )
    code: str = choice("random", "How code words are made.", code_words.KINDS)
    training: str = choice(
        AUTO,
        "Whether all bits are learned together, or each bit (a column of the code) as its own CRF.",
        (AUTO, "joint", "columns"),
    )
    history: int | str = integer(
        0,
        "Number of columns before it whose predictions a column sees.",
        low=0,
        high=code_words.MAX_BITS,
        words=[Word(ALL, stored=-1)],
    )
    cascade: str = choice(
        "cross_fitted",
        "Which predictions of other columns a column with history sees in training.",
        ("cross_fitted", "training"),
    )
    decoding: str = choice(
        "joint",
        "How labels are found from the probabilities of bits.",
        ("joint", *code_words.DECODINGS),
    )
    folds: int = integer(5, "Number of folds of cross-fitting.", low=2, high=100)
    beam: int | str | None = like(
        Settings,
        "beam",
        default=AUTO,
        words=(
            Word(AUTO, "a beam in training alone, for many labels", stored=-1),
            Word(None, "exact inference", stored=0),
        ),
    )
    constraints: str = like(Settings, "constraints")
    rules: Sequence[str] | None = like(Settings, "rules")
    predictor: str = like(Settings, "predictor")
    threads: int = like(Settings, "threads")
    seed: int = like(Settings, "seed", help="Seed of the code and of all random draws.")
    base: Base = made(Learner("What learns a bit."), Settings())  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
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
        """Order of the chain over labels; the published decodings look at each position alone."""
        return 1 if self.decoding == "joint" else 0

    @property
    def rounds(self) -> int | None:
        """Rounds of joint training are those of the base; else a round learns one bit."""
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
        bits = code_words.check_bits(self.code, n_labels, self.bits)
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
        own = self.settings()
        mine = {name: value for name, value in settings.items() if name in own}
        rest = {name: value for name, value in settings.items() if name not in own}
        return replace(self, **mine, base=replace(self.base, **rest))

    def _check_base(self) -> None:
        base = self.base
        if isinstance(base, PerceptronSettings):
            if base.method != "averaged":
                raise refused("base.method", base.method, "'averaged': bits need scores, not votes")
            if base.constraints != "none":
                raise refused(
                    "base.constraints", base.constraints, "'none', and SECOC's own instead"
                )
            if base.rules is not None:
                raise refused("base.rules", base.rules, "None, and SECOC's own instead")
            return
        if base.order > 1:
            raise refused("base.order", base.order, "0 or 1")
        if base.missing in IN_TREES:
            raise refused(
                "base.missing", base.missing, "one that is part of the encoding, not of trees"
            )
        for name, value in _ALWAYS.items():
            if getattr(base, name) != value:
                raise refused(
                    f"base.{name}", getattr(base, name), f"{value!r}, and that of the output code"
                )

    def _check_together(self) -> None:
        if self.training == "joint":
            if self.history != 0:
                raise refused(
                    "history",
                    self.history,
                    "0 with training='joint', whose columns learn together; a cascade needs "
                    "training='columns'",
                )
            if self.decoding != "joint":
                raise refused(
                    "decoding", self.decoding, "'joint' with training='joint', else 'columns'"
                )
            if isinstance(self.base, PerceptronSettings):
                raise refused("training", self.training, "'columns' with a perceptron as the base")
            if self.base.family == "joint":
                raise refused("base.family", "joint", "'auto' or 'separate' with training='joint'")
            for name, value in _JOINT.items():
                if getattr(self.base, name) != value:
                    raise refused(
                        f"base.{name}", getattr(self.base, name), f"{value!r} with training='joint'"
                    )
        if self.order == 0 and self.constraints != "none":
            raise refused(
                "constraints",
                self.constraints,
                f"'none' with decoding={self.decoding!r}, which has no transitions to constrain",
            )
