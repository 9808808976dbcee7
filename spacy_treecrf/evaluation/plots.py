"""Pictures of training and calibration; matplotlib is an optional extra."""

from __future__ import annotations

import importlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy_treecrf.columnar.model import TrainingCurve
from spacy_treecrf.evaluation.calibration import CalibrationBins


@dataclass(frozen=True)
class PlottedCurve:
    """Lines by name, each a list of points (x, y)."""

    x_name: str
    y_name: str
    lines: dict[str, list[tuple[float, float]]]
    kept: float | None  # x of the model that was kept


def require_matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ValueError(
            'treecrf: pictures need matplotlib, the extra "plot" of spacy-treecrf; pip install '
            'matplotlib, or pip install "spacy-treecrf[plot]"'
        ) from error


def curve_of_training(training: TrainingCurve, rounds: int) -> PlottedCurve | None:
    """The curve that `spacy-treecrf train` has recorded; None if it has no round."""
    n = len(training.log_likelihood)
    curves = {
        "training": training.log_likelihood,
        "held-out": training.held_out_log_likelihood,
    }
    lines = {
        name: [(float(n - len(values) + i + 1), value) for i, value in enumerate(values)]
        for name, values in curves.items()
        if values
    }
    return PlottedCurve("round", "log-likelihood per token", lines, rounds) if lines else None


def curve_of_log(path: Path, pipe: str) -> PlottedCurve:
    """The loss of a pipe and the score, from the log that spacy.ConsoleLogger.v3 writes."""
    loss: list[tuple[float, float]] = []
    score: list[tuple[float, float]] = []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"treecrf: cannot read the log {path}: {error}; check the path") from error
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            step = json.loads(line)
            at = float(step["step"])
            loss.append((at, float(step["losses"][pipe])))
            score.append((at, float(step["score"])))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"treecrf: {path}:{number}: expected a step of spacy.ConsoleLogger.v3 with the "
                f"loss of the pipe {pipe!r}, found {line[:60]!r}; name the pipe by --pipe"
            ) from error
    if not loss:
        raise ValueError(f"treecrf: the log {path} is empty")
    best = max(score, key=lambda point: point[1])[0]
    return PlottedCurve("step", "loss and score", {"loss": loss, "score": score}, best)


def draw(format: str, curve: PlottedCurve | None, calibration: CalibrationBins | None) -> bytes:
    """A picture with the curve, the calibration or both side by side.

    format: "png", "svg" or "pdf".
    """
    parts = [part for part in (curve, calibration) if part is not None]
    figure = require_matplotlib().Figure(figsize=(5.5 * len(parts), 4.2), layout="constrained")
    axes = figure.subplots(1, len(parts), squeeze=False)[0]
    for own, part in zip(axes, parts, strict=True):
        if isinstance(part, PlottedCurve):
            _draw_curve(own, part)
        else:
            _draw_calibration(own, part)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format=format)
    return picture.getvalue()


def _draw_curve(axes: Any, curve: PlottedCurve) -> None:
    for name, points in curve.lines.items():
        axes.plot(*zip(*points, strict=True), label=name, marker="." if len(points) < 30 else None)
    if curve.kept is not None:
        axes.axvline(curve.kept, color="grey", linestyle=":", label=f"model: {curve.kept:g}")
    axes.set(xlabel=curve.x_name, ylabel=curve.y_name, title="learning curve")
    axes.legend()


def _draw_calibration(axes: Any, bins: CalibrationBins) -> None:
    filled = bins.counts > 0
    share = bins.counts[filled] / bins.counts.sum()
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="perfect")
    axes.plot(bins.confidence[filled], bins.accuracy[filled], marker="o", label="model")
    axes.bar(
        (bins.edges[:-1] + bins.edges[1:])[filled] / 2,
        share,
        width=bins.edges[1] - bins.edges[0],
        alpha=0.2,
        label="share of tokens",
    )
    error = bins.error
    title = "calibration" if error is None else f"calibration (error {100 * error:.2f} %)"
    axes.set(
        xlabel="probability of the label", ylabel="share that is right", xlim=(0, 1), title=title
    )
    axes.legend()
