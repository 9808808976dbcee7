"""The search: it trains every combination of settings on every fold, unless the journal has it."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from thinc.api import Config

from spacy_treecrf.tuning.config_training import ConfigTraining, with_paths
from spacy_treecrf.tuning.folds import write_folds
from spacy_treecrf.tuning.journal import Journal, Result
from spacy_treecrf.tuning.space import Settings, key_of


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


class Training(Protocol):
    """A training on the data of one fold."""

    def __call__(self, settings: Settings, fold: int) -> Result:
        """Train with some settings, for a score or an error. fold: The number of the fold."""
        ...

    def packed(self) -> Training:
        """The same with all its data, for one thread of another machine."""
        ...


Call = tuple[Training, Settings, int]  # a training, and what it is called with
# What runs trainings somewhere else, such as on a cluster: yields results as they come.
RunAll = Callable[[Sequence[Call]], Iterable[Result]]


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
    code: Path | None = None  # a Python file with functions that the config names

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
        config = with_paths(self.config, train, dev)
        return ConfigTraining(config, train, dev, self.code)


def search(
    plan: SearchPlan,
    journal: Journal,
    progress: Callable[[Result | None], None] | None = None,
    run_all: RunAll | None = None,
) -> list[Trial]:
    """All trials, the best first.

    progress: A function that is called with each result.
    run_all: Runs what is to be trained, all at once; without it, one training follows another.
    """
    trials = []
    told = progress or (lambda _: None)
    with plan.trainings() as trainings:
        done = _run_all(plan, journal, trainings, told, run_all) if run_all else {}
        for settings in plan.trials:
            results = []
            for fold, train in enumerate(trainings):
                result = done.get((key_of(settings), fold))
                if result is None:
                    result = journal.find(settings, fold)
                    if result is None or result.score is None:  # what failed may work by now
                        result = train(settings, fold)
                        journal.add(result)
                    told(result)
                results.append(result)
                if result.score is None:
                    break  # the other folds would be refused as well
            trials.append(Trial(settings, results))
    return sorted(trials, key=lambda trial: math.inf if trial.score is None else -trial.score)


def _run_all(
    plan: SearchPlan,
    journal: Journal,
    trainings: Sequence[Training],
    told: Callable[[Result | None], None],
    run_all: RunAll,
) -> dict[tuple[str, int], Result]:
    """Results that the journal does not have, by settings and fold; it has them afterwards."""
    packed = [training.packed() for training in trainings]
    calls = []
    for settings in plan.trials:
        for fold, training in enumerate(packed):
            known = journal.find(settings, fold)
            if known is None or known.score is None:
                calls.append((training, settings, fold))
    found = {}
    for result in run_all(calls):
        journal.add(result)
        found[key_of(result.settings), result.fold] = result
        told(result)
    return found


def best_of(trials: list[Trial]) -> Trial:
    found = [trial for trial in trials if trial.score is not None]
    if not found:
        reason = trials[0].error if trials else "no settings"
        raise ValueError(f"treecrf: no combination of settings could be trained: {reason}")
    return max(found, key=lambda trial: trial.score or 0.0)


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
