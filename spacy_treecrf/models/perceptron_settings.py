"""Settings of a perceptron, each checked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD
from spacy_treecrf.engine.setting import SettingsBase, Word, choice, integer, like, refused

DEFAULT_ROUNDS = 10


@dataclass(frozen=True)
class PerceptronSettings(SettingsBase):
    """What to learn and how; the docstring of `PerceptronTagger` says more about each setting."""

    method: str = choice(
        "averaged",
        "What predicts: the mean of all weights (averaged) or votes of several weights (voted).",
        ("averaged", "voted"),
    )
    order: int = like(Settings, "order", high=1)
    rounds: int | None = like(
        Settings,
        "rounds",
        help="Number of passes over the data.",
        words=(Word(None, str(DEFAULT_ROUNDS), decided=True),),
    )
    voters: int = integer(
        2, "Number of weights of each round that vote, if method is voted.", low=1, high=1000
    )
    beam: int | None = like(Settings, "beam")
    min_count: int = like(Settings, "min_count", default=1)
    max_bins: int = like(Settings, "max_bins")
    constraints: str = like(Settings, "constraints")
    rules: Sequence[str] | None = like(Settings, "rules")
    predictor: str = like(Settings, "predictor")
    patience: int = like(
        Settings,
        "patience",
        default=3,
        help="Number of rounds without a better held-out accuracy before training stops; "
        "0 is never.",
    )
    threads: int = like(
        Settings, "threads", help="Number of threads of prediction; 0 means all cores."
    )
    seed: int = like(Settings, "seed", help="Seed of the order of the sequences.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beam is not None and self.order == 0:
            raise refused(
                "beam", self.beam, "None with order=0, which looks at each position on its own"
            )

    @property
    def missing(self) -> str:
        """A missing value is as if it was not mentioned."""
        return ABSENT_METHOD

    def resolved(self) -> PerceptronSettings:
        """The same with the number of rounds decided."""
        return replace(self, rounds=DEFAULT_ROUNDS) if self.rounds is None else self
