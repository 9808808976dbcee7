"""Chen et al. (2015), figure 1: convergence on handwritten words, and how tight gamma is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scripts.reproduce.pictures import labelled, load_fold, some_of
from scripts.reproduce.report import Comparison, Picture, Report, Table
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import Chain, pair_marginals
from spacy_treecrf.engine.chain.mixing import joint_messages, node_gamma
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.plots import require_matplotlib
from spacy_treecrf.models.crf import CRF, new_crf

Floats = npt.NDArray[np.float64]

ROUNDS = 60
QUICK_ROUNDS, QUICK_SEQUENCES = 10, 400
SHORTEST = 500
TREES: dict[str, Any] = {
    "family": "separate",
    "linear_rounds": 0,
    "leaves": 32,
    "shrinkage": 1.0,
}
PUBLISHED_STEP = "newton, mixing rate (GBCRF)"
GRADIENT_STEP = "gradient (TreeCRF)"
STEPS = {
    PUBLISHED_STEP: {"gamma": "mixing"},
    GRADIENT_STEP: {"step": "gradient"},
    "newton, local (our default)": {"gamma": "local"},
}
AT_MOST = 2.3  # published: how many times the exact gamma the bound is at most


@dataclass(frozen=True)
class Gammas:
    """Means of gamma over all labels of all positions."""

    round: int
    exact: float
    mixing: float
    length: float


def run(quick: bool, folder: Path) -> Report:
    figures = require_matplotlib()
    sequences = load_fold(0)["train"]
    if quick:
        sequences = some_of(sequences, QUICK_SEQUENCES)
    X, y = labelled(sequences)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    columns, offsets, feature_ids, numeric = fit_columns(X, min_count=2)
    names = sorted({label for labels in y for label in labels})
    ids = {name: i for i, name in enumerate(names)}
    labels = np.array([ids[label] for some in y for label in some], np.int32)
    data = Sequences(offsets, feature_ids, numeric, labels, np.ones(len(labels), np.float32))
    short = shortest(data, SHORTEST)
    losses: dict[str, list[float]] = {}
    gammas: list[Gammas] = []
    for step, settings in STEPS.items():
        model = new_crf(Settings(rounds=rounds, **TREES, **settings), names, columns, data)
        losses[step] = []
        with Workers() as workers:
            trainer = model.trainer(data, workers)
            for round_ in range(rounds + 1):
                trained = trainer.train(round_)
                losses[step].append(-trainer.log_likelihood)
                if step == PUBLISHED_STEP and is_shown(round_):
                    gammas.append(gammas_of(trained, short, workers))
        say(f"{step}: {losses[step][-1]:.4f} per letter after {rounds} rounds")
    draw(figures, folder, losses, gammas)
    return report(losses, gammas)


def is_shown(round_: int) -> bool:
    return round_ < 10 or round_ % 5 == 0


def shortest(data: Sequences, n: int) -> Sequences:
    order = np.argsort(np.diff(data.offsets), kind="stable")
    return data.subset(np.sort(order[:n]))


def gammas_of(model: CRF, data: Sequences, workers: Workers) -> Gammas:
    scores = model.scores(data, workers)
    pairs, _ = pair_marginals(scores, data.offsets, model.chain)
    messages = np.zeros((data.n_rows, 2), np.float32)
    joint_messages(pairs, data.offsets, messages)
    lengths = np.diff(data.offsets)
    exact = [
        exact_gamma(scores[a:b, 0].astype(float), model.chain)
        for a, b in itertools.pairwise(data.offsets)
    ]
    return Gammas(
        model.rounds,
        float(np.concatenate(exact).mean()),
        float(node_gamma(messages).mean()),
        float(np.repeat(2.0 * lengths, lengths).mean()),
    )


def exact_gamma(scores: Floats, chain: Chain) -> Floats:
    """sum_j |H_ij| / H_ii for every label of every position, by its definition (equation 9).

    With w the probabilities of the other labels of position t, given that it is not k, this is the
    sum over s and j of |P(y_s = j | y_t = k) - sum_l w_l P(y_s = j | y_t = l)|: no difference of
    nearly equal numbers has to be divided by 1 - p. shape: (length, n_labels), like scores
    """
    n, n_labels = scores.shape
    log_from, log_to = log_messages(scores, chain)
    nodes = softmax(log_from + log_to)
    forward = [softmax(chain.trans + (scores + log_to)[t + 1]) for t in range(n - 1)]
    backward = [softmax((chain.trans + log_from[t][:, None]).T) for t in range(n - 1)]
    gamma = np.zeros((n, n_labels))
    for t in range(n):
        others = np.where(np.eye(n_labels, dtype=bool), 0.0, nodes[t])
        others /= np.maximum(others.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        for given in conditionals(forward[t:], n_labels):
            gamma[t] += np.abs(given - others @ given).sum(axis=1)
        for given in itertools.islice(conditionals(backward[:t][::-1], n_labels), 1, None):
            gamma[t] += np.abs(given - others @ given).sum(axis=1)
    return gamma


def conditionals(steps: Sequence[Floats], n_labels: int) -> itertools.accumulate[Floats]:
    """P(y_s | y_t) for s from t on. shape of each: (labels of t, labels of s)"""
    return itertools.accumulate(steps, np.matmul, initial=np.eye(n_labels))


def log_messages(scores: Floats, chain: Chain) -> tuple[Floats, Floats]:
    """The messages from the left, with the position's own score, and from the right, without it."""
    log_from, log_to = np.empty_like(scores), np.empty_like(scores)
    log_from[0] = chain.start + scores[0]
    for t in range(1, len(scores)):
        log_from[t] = log_sum_exp(log_from[t - 1][:, None] + chain.trans, axis=0) + scores[t]
    log_to[-1] = chain.end
    for t in range(len(scores) - 1, 0, -1):
        log_to[t - 1] = log_sum_exp(chain.trans + scores[t] + log_to[t], axis=1)
    return log_from, log_to


def log_sum_exp(values: Floats, axis: int) -> Floats:
    summed: Floats = np.logaddexp.reduce(values, axis=axis)
    return summed


def softmax(values: Floats) -> Floats:
    """The softmax over the last axis."""
    shares: Floats = np.exp(values - np.logaddexp.reduce(values, axis=-1, keepdims=True))
    return shares


def draw(figures: Any, folder: Path, losses: dict[str, list[float]], gammas: list[Gammas]) -> None:
    figure = figures.Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for step, values in losses.items():
        left.plot(range(len(values)), values, label=step)
    left.set(xlabel="round", ylabel="negative log-likelihood per letter", yscale="log")
    rounds = [gamma.round for gamma in gammas]
    for name in ("length", "mixing", "exact"):
        right.plot(rounds, [getattr(gamma, name) for gamma in gammas], label=name)
    right.set(xlabel="round", ylabel="gamma", ylim=(0, None))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(folder / "chen-figure-1.png", dpi=120)


def report(losses: dict[str, list[float]], gammas: list[Gammas]) -> Report:
    rounds = len(losses[GRADIENT_STEP]) - 1
    shown = sorted({0, 5, 10, 20, 40, rounds} & set(range(rounds + 1)))
    level = losses[GRADIENT_STEP][-1]
    reached = {step: first_below(values, level) for step, values in losses.items()}
    loss_rows = [
        [step, *(f"{values[r]:.4f}" for r in shown), str(reached[step])]
        for step, values in losses.items()
    ]
    ratio = max(gamma.mixing / gamma.exact for gamma in gammas)
    gamma_rows = [
        [str(g.round), f"{g.exact:.2f}", f"{g.mixing:.2f}", f"{g.length:.2f}"]
        for g in gammas
        if g.round in shown
    ]
    return Report(
        "Chen et al. (2015), figure 1: convergence on handwritten words",
        [
            Table(
                "(a) Negative log-likelihood per letter of the training data after so many rounds, "
                f"and the round that has what gradient steps reach in {rounds}",
                ["steps", *map(str, shown), f"round with {level:.4f}"],
                loss_rows,
            ),
            Table(
                f"(b) Gamma of nodes, mean over the {SHORTEST} shortest sequences",
                ["round", "exact", "mixing rate", "length"],
                gamma_rows,
            ),
        ],
        [
            Comparison(
                "OCR, rounds until newton (mixing rate) has the likelihood of gradient's last one",
                reached[PUBLISHED_STEP],
                rounds - 1,
                lower_is_better=True,
            ),
            Comparison(
                "OCR, gamma by mixing rate over exact gamma, at most",
                round(ratio, 2),
                AT_MOST,
                "our mean is over all labels of a position, also the improbable ones",
                lower_is_better=True,
            ),
        ],
        [Picture("chen-figure-1.png", "Convergence (left), and estimates of gamma (right)")],
        [
            "Own pixels of each letter, fold 0's training part, trees of 32 leaves, shrinkage 1. "
            "Newton steps are halved where they would lower the likelihood; gradient steps are "
            "not, as published. Gamma is that of the models of newton steps with the mixing rate; "
            "exact is equation 9 for every label of every position."
        ],
    )


def first_below(values: Sequence[float], level: float) -> int:
    """The first round whose loss is at most `level`, or one past the last round."""
    return next((r for r, value in enumerate(values) if value <= level), len(values))
