"""The cost of a round of trees on a cluster, on paper: bytes and seconds.

The constants are fitted to measured runs with one and two workers of two sizes, and checked on a
run of a third size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

BYTES_OF_FEATURE = 13  # of a feature that few rows of a node have, as its sums travel


@dataclass(frozen=True)
class Size:
    """A training."""

    rows: int
    columns: int
    labels: int
    leaves: int
    features: int
    workers: int

    @property
    def nodes(self) -> int:
        """Nodes whose rows are summed up in a round: the roots, and a child of each other split."""
        return self.labels * (self.leaves - 1)


def cells_of_feature(size: Size) -> float:
    """Cells of a worker for each feature that there is."""
    return size.rows * size.columns / size.workers / size.features


@dataclass(frozen=True)
class Costs:
    """What was fitted.

    factor, power: The share of all features that the rows of a node have on a worker, by the cells
        that it keeps for each feature.
    seconds: Of a row and label, of a feature of a node that a worker has or owns, of a byte sent.
    linear: Seconds of a linear round: of a row and label, and in any case.
    reading: Seconds of a row before the first round, and in any case.
    """

    factor: float
    power: float
    seconds: tuple[float, float, float]
    linear: tuple[float, float]
    reading: tuple[float, float]

    def touched(self, size: Size) -> float:
        return size.features * min(1.0, self.factor * cells_of_feature(size) ** self.power)

    def bytes_of_round(self, size: Size) -> float:
        """Bytes that workers send each other in a round of trees: all but each one's own share."""
        return (size.workers - 1) * size.nodes * self.touched(size) * BYTES_OF_FEATURE

    def tree_round(self, size: Size) -> float:
        return float(np.dot(self.seconds, self._terms(size)))

    def training(self, size: Size, trees: int, linear: int) -> float:
        """Seconds of a training with so many rounds."""
        shares = np.array([size.rows * size.labels / size.workers, 1.0])
        reading = np.array([size.rows / size.workers, 1.0])
        return float(
            trees * self.tree_round(size)
            + linear * np.dot(self.linear, shares)
            + np.dot(self.reading, reading)
        )

    def _terms(self, size: Size) -> tuple[float, float, float]:
        of_all = self.touched(replace(size, workers=1)) / size.workers
        return (
            size.rows * size.labels / size.workers,
            size.nodes * (self.touched(size) + of_all),
            self.bytes_of_round(size) / size.workers,
        )


def fit(runs: Sequence[tuple[Size, dict[str, Any]]], trees: str = "tree_seconds") -> Costs:
    """Constants for runs of one and two workers. trees: which figure of a run is explained"""
    sent = [(size, run["worker_bytes_per_round"]) for size, run in runs if size.workers > 1]
    touched = [n / ((size.workers - 1) * size.nodes * BYTES_OF_FEATURE) for size, n in sent]
    shares = [n / size.features for (size, _), n in zip(sent, touched, strict=True)]
    cells = [cells_of_feature(size) for size, _ in sent]
    power, log_factor = np.polyfit(np.log(cells), np.log(shares), 1)
    costs = Costs(float(np.exp(log_factor)), float(power), (0.0,) * 3, (0.0,) * 2, (0.0,) * 2)
    reading = [run["seconds"] - run["rounds_seconds"] for _, run in runs]
    return Costs(
        costs.factor,
        costs.power,
        _least([costs._terms(size) for size, _ in runs], [run[trees] for _, run in runs]),
        _least(
            [(size.rows * size.labels / size.workers, 1.0) for size, _ in runs],
            [run["linear_seconds"] for _, run in runs],
        ),
        _least([(size.rows / size.workers, 1.0) for size, _ in runs], reading),
    )


def _least(terms: Sequence[tuple[float, ...]], seconds: Sequence[float]) -> Any:
    """Factors, none below 0, by which the terms come nearest to the seconds, relative to them."""
    table, measured = np.array(terms), np.array(seconds)
    scale = table.max(axis=0)
    scale[scale == 0.0] = 1.0
    relative, ones = table / scale / measured[:, None], np.ones(len(measured))
    best, least = np.zeros(len(scale)), np.inf
    for used in product((False, True), repeat=len(scale)):
        factors = np.zeros(len(scale))
        factors[list(used)] = np.linalg.lstsq(relative[:, list(used)], ones, rcond=None)[0]
        error = float(((relative @ factors - ones) ** 2).sum())
        if (factors >= 0.0).all() and error < least:
            best, least = factors, error
    return tuple((best / scale).tolist())


def pays_from(costs: Costs, size: Size, trees: int, linear: int, gain: float = 1.5) -> int | None:
    """The fewest rows from which these workers are so many times as fast as one; None: never."""
    for rows in (int(10**e) for e in np.arange(4.0, 9.01, 0.05)):
        own = replace(size, rows=rows)
        alone = replace(own, workers=1)
        if costs.training(alone, trees, linear) >= gain * costs.training(own, trees, linear):
            return rows
    return None


def draw(costs: Costs, runs: Sequence[tuple[Size, dict[str, Any]]], path: Path, trees: str) -> None:
    """Seconds and bytes of a round of trees over rows: lines as modelled, dots as measured."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    last = runs[-1][0]
    rows = np.geomspace(min(size.rows for size, _ in runs) / 2, 1e7, 40).astype(int)
    for workers, color in zip((1, 2, 4, 8), ("C0", "C1", "C2", "C3"), strict=True):
        sizes = [replace(last, rows=int(n), workers=workers) for n in rows]
        name = f"{workers} worker" + "s" * (workers > 1)
        left.loglog(rows, [costs.tree_round(size) for size in sizes], color, label=name)
        own = [(size.rows, run) for size, run in runs if size.workers == workers]
        left.plot([n for n, _ in own], [run[trees] for _, run in own], "o", color=color)
        if workers > 1:
            sent = [costs.bytes_of_round(size) / workers / 1e6 for size in sizes]
            right.loglog(rows, sent, color, label=name)
            measured = [run["worker_bytes_per_round"] / workers / 1e6 for _, run in own]
            right.plot([n for n, _ in own], measured, "o", color=color)
    left.set(xlabel="rows", ylabel="seconds", title="A round of trees")
    right.set(xlabel="rows", ylabel="MB", title="What a worker sends in it")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
