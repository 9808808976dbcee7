"""Figures 2 and 3 of Kersting and Gutmann (2006): conjugate directions and unbiased weights."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.problems import PROBLEMS, Part
from scripts.reproduce.report import Comparison, Picture, Report, Table
from scripts.reproduce.treecrf import TREECRF
from spacy_treecrf import BoostedCRF
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.corpora.salesman import LAYER, Salesman
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.evaluation.plots import require_matplotlib

TOURS, TEST_TOURS, DAYS = 100, 8, 15
ROUNDS = 30
FIRST = 5  # rounds that count as the first ones
SHOWN = (1, 2, 3, 4, 5, 10, 20, 30)
Curves = dict[str, list[RoundInfo]]


def methods() -> dict[str, dict[str, Any]]:
    """The settings of gradient (GT) and conjugate trees (CGT), with and without weights, search."""
    return {
        f"{name}{', unbiased' if unbiased else ''}{', line search' if search else ''}": {
            "step": step,
            "unbiased": unbiased,
            "line_search": search,
        }
        for search, unbiased, (name, step) in product(
            (False, True), (False, True), (("GT", "gradient"), ("CGT", "conjugate"))
        )
    }


def learned(train: Part, test: Part, rounds: int, leaves: int) -> Curves:
    """The figures that each method reached after each round, on both parts."""
    curves: Curves = {}
    for name, settings in methods().items():
        infos: list[RoundInfo] = []
        fixed = TREECRF | {"leaves": leaves, "rounds": rounds, "patience": 0}
        BoostedCRF(**fixed | settings, callback=infos.append).fit(*train, *test)
        curves[name] = infos
        say(f"  {name}: {infos[-1].log_likelihood:.3f} in training")
    return curves


def salesman() -> tuple[Part, Part]:
    """100 tours of 15 days, 92 to learn from and 8 to test, with a feature for each activity."""
    sequences = Salesman().sample(TOURS, DAYS)
    parts = sequences[:-TEST_TOURS], sequences[-TEST_TOURS:]
    train, test = (
        ([[{"day": word} for word in r.words] for r in own], [r.labels[LAYER] for r in own])
        for own in parts
    )
    return train, test


def run_salesman(quick: bool, folder: Path) -> Report:
    """Figure 2 of the paper."""
    curves = learned(*salesman(), 10 if quick else ROUNDS, leaves=16)
    title = "Kersting and Gutmann (2006), figure 2: the traveling salesman"
    remarks = [
        f"{TOURS - TEST_TOURS} tours of {DAYS} days to learn from, {TEST_TOURS} to test. The costs "
        "of two cities and of the ways, and the exponent b = 2 of the weights, are ours: they "
        "cannot be read in the text that we have.",
    ]
    return reported(title, "kersting-2", "Salesman", curves, folder, remarks)


def run_protein(quick: bool, folder: Path) -> Report:
    """Figure 3 of the paper."""
    problem = PROBLEMS["Protein"]
    train, test = problem.part("train"), problem.part("test")
    n = 20 if quick else None
    curves = learned((train[0][:n], train[1][:n]), test, 10 if quick else ROUNDS, leaves=32)
    title = "Kersting and Gutmann (2006), figure 3: protein secondary structure"
    return reported(title, "kersting-3", "Protein", curves, folder, [])


def reported(
    title: str, name: str, data: str, curves: Curves, folder: Path, remarks: list[str]
) -> Report:
    ours, plain = curves["CGT, unbiased"], curves["GT"]
    comparisons = [
        Comparison(
            f"{data}, training log-likelihood after {n} rounds, CGT unbiased against GT",
            round(ours[n - 1].log_likelihood, 3),
            round(plain[n - 1].log_likelihood, 3),
        )
        for n in range(2, FIRST + 1)
    ]
    remarks = [
        *remarks,
        "Log-likelihood per position of the training part, and what the model says of the test "
        "part; no rounds are chosen by it. GT: gradient, CGT: conjugate steps; unbiased: observed "
        "labels weigh more, and less so with each round. The first step of both is the same but "
        "for the weights; the paper has curves only, no figures to set beside these.",
    ]
    return Report(title, tables_of(curves), comparisons, [draw(name, curves, folder)], remarks)


def tables_of(curves: Curves) -> list[Table]:
    n = len(next(iter(curves.values())))
    rounds = [r for r in SHOWN if r <= n]
    head = ["rounds", *map(str, rounds)]
    of = {
        "Training log-likelihood": lambda info: f"{info.log_likelihood:.3f}",
        "Test log-likelihood": lambda info: f"{info.held_out_log_likelihood:.3f}",
        "Test accuracy %": lambda info: f"{100 * info.held_out_accuracy:.1f}",
    }
    tables = []
    for what, show in of.items():
        rows = [[name, *(show(infos[r - 1]) for r in rounds)] for name, infos in curves.items()]
        tables.append(Table(what, head, rows))
    return tables


def draw(name: str, curves: Curves, folder: Path) -> Picture:
    figure = require_matplotlib().Figure(figsize=(12, 7), layout="constrained")
    grid = figure.subplots(2, 2, sharex=True)
    for row, (what, value) in zip(
        grid,
        {
            "training": lambda info: info.log_likelihood,
            "test": lambda info: info.held_out_log_likelihood,
        }.items(),
        strict=True,
    ):
        for axes, searched in zip(row, (False, True), strict=True):
            for method, infos in curves.items():
                if method.endswith("line search") == searched:
                    points = [(info.round, value(info)) for info in infos]
                    axes.plot(*np.array(points).T, label=method)
            axes.set_ylabel(f"{what} log-likelihood")
            axes.set_xlabel("rounds")
            axes.legend()
    figure.savefig(folder / f"{name}.png", dpi=100)
    return Picture(f"{name}.png", "Log-likelihood over rounds, without (left) and with line search")
