"""The pictures of output codes: accuracy over the length of code words, and over CPU seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.reproduce.secoc_points import PAPER, Point
from spacy_treecrf.evaluation.plots import require_matplotlib


def draw(points: Sequence[Point], name: str, folder: Path) -> str:
    """Draw the picture of one data set; returns the name of its file."""
    here = [point for point in points if point.data == name]
    coded = [point for point in here if point.bits is not None]
    figure = require_matplotlib().Figure(figsize=(15, 4.5), layout="constrained")
    boosted, perceptron, times = figure.subplots(1, 3)
    over_length(boosted, [p for p in coded if "perceptron" not in p.method])
    boosted.set_title(f"{name}: boosted bits")
    over_length(perceptron, [p for p in coded if "perceptron" in p.method])
    perceptron.set_title(f"{name}: perceptrons' bits")
    over_seconds(times, [point for point in here if point.cpu_seconds is not None])
    times.set_title(name)
    for axes in (boosted, perceptron, times):
        axes.set_ylabel("accuracy %")
    for axes in (boosted, perceptron):
        if axes.lines:
            axes.legend(fontsize=6)
    if times.lines:  # too many for the inside
        times.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    file = f"secoc-{name.replace(', ', '-').replace(' ', '-').lower()}.png"
    figure.savefig(folder / file, dpi=110)
    return file


def over_length(axes: Any, points: Sequence[Point]) -> None:
    """Draw a line for each method, dashed for published ones."""
    longest = max((p.bits or 0 for p in points if p.by == PAPER), default=0)
    for method in dict.fromkeys(point.method for point in points):
        line = sorted(
            (p.bits, p.accuracy)
            for p in points
            # Defaults with far more bits than all others would squeeze these.
            if p.method == method and p.bits is not None and p.bits <= longest
        )
        by_paper = any(p.by == PAPER for p in points if p.method == method)
        if line:
            axes.plot(*zip(*line, strict=True), "o--" if by_paper else "s-", label=method, ms=4)
    axes.set_xlabel("length of code words")


def over_seconds(axes: Any, points: Sequence[Point]) -> None:
    """Draw marks for each method: squares are ours, triangles perceptrons, crosses have no code."""
    for method in dict.fromkeys(point.method for point in points):
        mine = [point for point in points if point.method == method]
        line = [(point.cpu_seconds, point.accuracy) for point in mine]
        axes.plot(*zip(*line, strict=True), marker(mine[0]), label=method, ms=5)
    axes.set_xscale("log")
    axes.set_xlabel("CPU seconds of training")


def marker(point: Point) -> str:
    perceptron = "perceptron" in point.method
    if point.bits is None:
        return "+" if perceptron else "x"
    if point.by == PAPER:
        return "^" if perceptron else "o"
    return "s"
