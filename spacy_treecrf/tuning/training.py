"""One training of a spaCy config, as `spacy train` does it, for its score alone."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spacy import util
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import registry
from thinc.api import Config

from spacy_treecrf.tuning.journal import Result
from spacy_treecrf.tuning.space import Settings, unknown_setting

LOGGER = "spacy_treecrf.ScoreCollector.v1"


def load_config(path: Path) -> Config:
    """The config as it is written, with its variables."""
    try:
        return util.load_config(path, interpolate=False)
    except OSError as error:
        raise ValueError(f"treecrf: cannot read the config {path}: {error}") from error
    except ValueError as error:
        raise ValueError(f"treecrf: {path} is not a config of spaCy: {error}") from error


def with_settings(config: Config, settings: Settings) -> Config:
    """A copy of the config with some settings changed; sections that do not exist are made."""
    changed = config.copy()
    for name, value in settings.items():
        *sections, last = name.split(".")
        at: dict[str, Any] = changed
        for section in sections:
            at = at.setdefault(section, {})
            if not isinstance(at, dict):
                raise unknown_setting(name, "the config", [])
        at[last] = value
    return changed


def check_names(config: Config, names: list[str]) -> None:
    """Refuse settings that the config, with all defaults filled in, does not have."""
    nlp = util.load_model_from_config(config, auto_fill=True, validate=False)
    known = _dotted(nlp.config)
    for name in names:
        if name not in known:
            raise unknown_setting(name, "the config", known)


def run_training(
    config: Config,
    settings: Settings,
    fold: int,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Train with these settings; a result without a score says that this cannot be done."""
    began = time.monotonic()
    collector = _Collector(progress)
    registry.loggers.register(LOGGER, func=lambda: collector.setup)
    changed = with_settings(config, settings)
    changed["training"]["logger"] = {"@loggers": LOGGER}
    error = None
    try:
        nlp = init_nlp(changed)
        train(nlp, None, stdout=io.StringIO(), stderr=io.StringIO())
    except ValueError as refused:
        error = str(refused)
    best = collector.best
    if best is None and error is None:
        error = "the training made no evaluation"
    return Result(
        settings=settings,
        fold=fold,
        score=None if error is not None or best is None else float(best["score"]),
        scores={} if error is not None or best is None else _numbers(best["other_scores"]),
        step=None if best is None else int(best["step"]),
        seconds=round(time.monotonic() - began, 3),
        error=error,
    )


class _Collector:
    """A logger for spaCy that keeps the best step, as `spacy train` keeps the best model."""

    def __init__(self, progress: Callable[[float], None] | None) -> None:
        self.best: dict[str, Any] | None = None
        self.progress = progress

    def setup(self, nlp: Any, stdout: Any, stderr: Any) -> tuple[Any, Any]:
        return self.log_step, lambda: None

    def log_step(self, info: dict[str, Any] | None) -> None:
        if info is None:
            return
        if self.best is None or info["score"] > self.best["score"]:
            self.best = {name: info[name] for name in ("score", "other_scores", "step")}
        if self.progress:
            self.progress(float(info["score"]))


def _numbers(scores: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in sorted(scores.items())
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    }


def _dotted(config: dict[str, Any], prefix: str = "") -> set[str]:
    found = set()
    for name, value in config.items():
        found.add(prefix + name)
        if isinstance(value, dict):
            found |= _dotted(value, f"{prefix}{name}.")
    return found
