"""Settings of a perceptron, each checked by name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.missing import ABSENT_METHOD
from spacy_treecrf.engine.settings import CHOICES, MAX_ROUNDS, check_beam, check_integer

METHODS = ("averaged", "voted")
DEFAULT_ROUNDS = 10

_CHOICES = {
    "method": METHODS,
    "constraints": CHOICES["constraints"],
    "predictor": CHOICES["predictor"],
}
_INTEGERS = {
    "order": (0, 1),
    "rounds": (0, MAX_ROUNDS),
    "voters": (1, 1000),
    "min_count": (1, 2**31 - 1),
    "max_bins": (2, 255),
    "patience": (0, 10**6),
    "threads": (0, 1024),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class PerceptronSettings:
    """What to learn and how; `PerceptronTagger` documents each of them."""

    method: str = "averaged"
    order: int = 1
    rounds: int | None = None
    voters: int = 2
    beam: int | None = None
    min_count: int = 1
    max_bins: int = 255
    constraints: str = "none"
    predictor: str = "viterbi"
    patience: int = 3
    threads: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ValueError(
                    f"treecrf: setting {name!r} is {value!r}; use one of "
                    + ", ".join(map(repr, choices))
                )
        for name, (low, high) in _INTEGERS.items():
            value = getattr(self, name)
            if name != "rounds" or value is not None:
                object.__setattr__(self, name, check_integer(name, value, low, high))
        check_beam(self.beam)
        if self.beam is not None and self.order == 0:
            raise ValueError(
                f"treecrf: setting 'beam' is {self.beam!r}; use None with order=0, which looks at "
                "each position on its own"
            )

    @property
    def missing(self) -> str:
        """A missing value is as if it was not mentioned."""
        return ABSENT_METHOD

    def resolved(self) -> PerceptronSettings:
        """The same with the number of rounds decided."""
        return replace(self, rounds=DEFAULT_ROUNDS) if self.rounds is None else self

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def read_perceptron_settings(reader: Fields) -> PerceptronSettings:
    values: dict[str, Any] = {name: reader.string(name) for name in _CHOICES}
    values |= {name: reader.integer(name) for name in _INTEGERS}
    values["beam"] = None if reader.is_none("beam") else reader.integer("beam")
    reader.done()
    return PerceptronSettings(**values)
