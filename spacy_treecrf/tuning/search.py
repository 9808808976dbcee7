"""The search: it trains every combination of settings on every fold, unless the journal has it."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from thinc.api import Config

from spacy_treecrf.tuning.folds import write_folds
from spacy_treecrf.tuning.journal import Journal, Result
from spacy_treecrf.tuning.space import Settings
from spacy_treecrf.tuning.training import run_training


@dataclass(frozen=True)
class Trial:
    """Settings, and the scores they reached on all folds."""

    settings: Settings
    results: list[Result]

    @property
    def score(self) -> float | None:
        """The mean score; None if a fold could not be trained."""
        scores = [result.score for result in self.results]
        known = [score for score in scores if score is not None]
        return sum(known) / len(scores) if len(known) == len(scores) else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over folds."""
        mean = self.score
        if mean is None or len(self.results) < 2:
            return None
        squares = [
            (result.score - mean) ** 2 for result in self.results if result.score is not None
        ]
        return math.sqrt(sum(squares) / (len(squares) - 1))

    @property
    def error(self) -> str | None:
        return next((result.error for result in self.results if result.error), None)


# A training with some settings, and the number of its fold, that ends in a score or an error.
Training = Callable[[Settings, int], Result]


class SearchPlan(Protocol):
    """A plan of a search: the settings to try, and what to train with them."""

    @property
    def trials(self) -> list[Settings]: ...

    def about(self) -> dict[str, object]:
        """The facts that results depend on besides settings; the journal begins with them."""
        ...

    def trainings(self) -> AbstractContextManager[Sequence[Training]]:
        """A training for each fold, as long as their data are there."""
        ...


@dataclass(frozen=True)
class Plan:
    """A plan to tune a config of spaCy."""

    config: Config
    trials: list[Settings]
    train: Path
    dev: Path | None  # held-out data; None: a part of the training data
    folds: int  # 0: no cross-validation
    hold_out: float
    seed: int

    def about(self) -> dict[str, object]:
        """The facts that results depend on besides settings; the journal begins with them."""
        return {
            "config": digest(self.config.to_str(interpolate=False).encode()),
            "train": digest_of(self.train),
            "dev": None if self.dev is None else digest_of(self.dev),
            "folds": self.folds,
            "hold_out": self.hold_out if self.dev is None and not self.folds else None,
            "seed": self.seed if self.dev is None else None,
        }

    @contextmanager
    def trainings(self) -> Iterator[Sequence[Training]]:
        with _data(self) as pairs:
            yield [self._training(train, dev) for train, dev in pairs]

    def _training(self, train: Path, dev: Path) -> Training:
        paths = {"corpora.train.path": str(train), "corpora.dev.path": str(dev)}
        config = _with_paths(self.config, paths)
        return lambda settings, fold: run_training(config, settings, fold)


def search(
    plan: SearchPlan, journal: Journal, progress: Callable[[Result | None], None] | None = None
) -> list[Trial]:
    """All trials, the best first.

    progress: A function that is called with each result.
    """
    trials = []
    with plan.trainings() as trainings:
        for settings in plan.trials:
            results = []
            for fold, train in enumerate(trainings):
                result = journal.find(settings, fold)
                if result is None or result.score is None:  # what failed may work by now
                    result = train(settings, fold)
                    journal.add(result)
                results.append(result)
                if progress:
                    progress(result)
                if result.score is None:
                    break  # the other folds would be refused as well
            trials.append(Trial(settings, results))
    return sorted(trials, key=lambda trial: math.inf if trial.score is None else -trial.score)


def best_of(trials: list[Trial]) -> Trial:
    found = [trial for trial in trials if trial.score is not None]
    if not found:
        reason = trials[0].error if trials else "no settings"
        raise ValueError(f"treecrf: no combination of settings could be trained: {reason}")
    return max(found, key=lambda trial: trial.score or 0.0)


def _with_paths(config: Config, paths: dict[str, str]) -> Config:
    changed = config.copy()
    corpora = changed.get("corpora", {})
    for name, path in paths.items():
        _, part, key = name.split(".")
        if key not in corpora.get(part, {}):
            raise ValueError(
                f"treecrf: the config has no setting {name!r} to put data there; use "
                "spacy.Corpus.v1 readers in [corpora.train] and [corpora.dev]"
            )
        corpora[part][key] = path
    return changed


@contextmanager
def _data(plan: Plan) -> Iterator[list[tuple[Path, Path]]]:
    if plan.dev is not None:
        yield [(plan.train, plan.dev)]
        return
    with tempfile.TemporaryDirectory(prefix="treecrf-tune-") as folder:
        yield write_folds(
            plan.train,
            Path(folder),
            folds=plan.folds,
            hold_out=plan.hold_out,
            seed=plan.seed,
        )


def digest_of(path: Path) -> str:
    """The digest of the content of a file, or of all .spacy files in a folder."""
    files = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    try:
        return digest(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files))
    except OSError as error:
        raise ValueError(f"treecrf: cannot read {path}: {error}; check the path") from error


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
