"""Table 3.6 and figure 3.3 of Hao (2009): where the time of a round goes."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.reproduce.problems import PROBLEMS, Part, window_items
from scripts.reproduce.report import Picture, Report, Table
from scripts.reproduce.treecrf import TREECRF, compile_kernels
from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.chain.chain import pair_marginals
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.plots import require_matplotlib

ROUNDS = 30
REPEATS = 5
# Average length, number of features, seconds of a round: forward-backward and trees of TREECRF,
# forward-backward and feature induction of MALLET.
PAPER_36 = {
    "Protein": (163, 231, 1.493, 1.433, 0.736, 48.889),
    "NETtalk": (7, 351, 0.622, 2.049, 0.589, 25.983),
    "Hyphen": (6, 162, 0.324, 0.332, 0.307, 4.621),
}
LENGTHS = (10, 20, 40, 80, 160, 320)  # figure 3.3a, window 3
WIDTHS = (3, 5, 7, 9, 11)  # figure 3.3b, length 100
SEQUENCES = 100


@dataclass(frozen=True)
class RoundTime:
    """The seconds of one round on one thread."""

    forward_backward: float
    trees: float  # growing and adding trees, and all the rest
    features: int


def time_of_round(part: Part, rounds: int) -> RoundTime:
    X, y = part
    ends: list[float] = []

    def note(info: RoundInfo) -> None:
        ends.append(info.seconds)

    settings: dict[str, Any] = TREECRF | {"leaves": 100, "penalty": 40.0}
    model = BoostedCRF(**settings, rounds=rounds, threads=1, callback=note).fit(X, y)
    crf, data = model.model_, Sequences.unlabelled(*model.model_.columns.encode(X))
    with Workers(1) as workers:
        scores = crf.scores(data, workers)
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        pair_marginals(scores, data.offsets, crf.chain)
        seconds.append(time.perf_counter() - began)
    inference = float(np.median(seconds))
    whole = float(np.median(np.diff(ends)))
    return RoundTime(inference, max(whole - inference, 0.0), len(crf.columns.counts))


def hmm(length: int, width: int, seed: int = 0) -> Part:
    """Sequences of three labels and 24 observations, as in section 3.5.3."""
    rng = random.Random(f"{seed} {length}")
    X, y = [], []
    for _ in range(SEQUENCES):
        labels = [rng.randrange(3)]
        while len(labels) < length:
            stays = rng.random() < 0.6
            labels.append(labels[-1] if stays else (labels[-1] + rng.choice((1, 2))) % 3)
        own = [rng.random() < 0.6 for _ in labels]
        # The other 16 observations follow a label's own 8, in a circle.
        words = [
            str((8 * label + (rng.randrange(8) if o else 8 + rng.randrange(16))) % 24)
            for label, o in zip(labels, own, strict=True)
        ]
        X.append(window_items(words, range(-(width // 2), width // 2 + 1)))
        y.append([str(label) for label in labels])
    return X, y


def run(quick: bool, folder: Path) -> Report:
    compile_kernels()
    rounds = 5 if quick else ROUNDS
    rows = []
    for name, published in PAPER_36.items():
        part = PROBLEMS[name].part("train")
        own = time_of_round(part, rounds)
        rows.append(
            [
                name,
                f"{np.mean([len(y) for y in part[1]]):.0f} ({published[0]})",
                f"{own.features} ({published[1]})",
                f"{own.forward_backward:.4f}",
                f"{published[2]:.3f}",
                f"{published[4]:.3f}",
                f"{own.trees:.4f}",
                f"{published[3]:.3f}",
                f"{published[5]:.3f}",
            ]
        )
    head = [
        "", "length", "features", "forward-backward s", "TREECRF", "MALLET",
        "trees s", "TREECRF", "MALLET",
    ]  # fmt: skip
    lengths = {n: time_of_round(hmm(n, 3), rounds) for n in LENGTHS[: 3 if quick else None]}
    widths = {n: time_of_round(hmm(100, n), rounds) for n in WIDTHS[: 2 if quick else None]}
    tables = [
        Table("Seconds of a round; in brackets and by name, as published", head, rows),
        Table(
            "Figure 3.3a: sequences of different lengths, window 3",
            ["length", *map(str, lengths)],
            [
                [
                    "forward-backward ms",
                    *(f"{1000 * t.forward_backward:.2f}" for t in lengths.values()),
                ]
            ],
        ),
        Table(
            "Figure 3.3b: windows of different widths, length 100",
            ["window", *map(str, widths)],
            [["trees ms", *(f"{1000 * t.trees:.2f}" for t in widths.values())]],
        ),
    ]
    remarks = [
        f"One thread, compiled; medians of {rounds} rounds of TreeCRF, 100 leaves and lambda 40. "
        "The other figures were published in 2009 and are of a 2.4 GHz Xeon. What MALLET spends on "
        "inducing features, CRFsuite does not do at all: see table 3.5 for its training times.",
    ]
    title = "Hao (2009), table 3.6 and figure 3.3: where the time of a round goes"
    return Report(title, tables, pictures=[draw(lengths, widths, folder)], remarks=remarks)


def draw(lengths: dict[int, RoundTime], widths: dict[int, RoundTime], folder: Path) -> Picture:
    figure = require_matplotlib().Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(list(lengths), [1000 * t.forward_backward for t in lengths.values()], "o-")
    left.set_xlabel("length of the sequences")
    left.set_ylabel("forward-backward, ms a round")
    right.plot(list(widths), [1000 * t.trees for t in widths.values()], "o-")
    right.set_xlabel("width of the window")
    right.set_ylabel("trees, ms a round")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
    file = "hao-3.6.png"
    figure.savefig(folder / file, dpi=100)
    return Picture(file, "Time of a round over the length of sequences and the width of windows")
