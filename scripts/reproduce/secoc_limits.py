"""The best accuracy that any model of a window could have on synthetic data.

The labels of a hidden Markov model whose parameters are known have exact posteriors. They bound
what can be learned from a window, and so how far bits without a chain (iid) can be from chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scripts.reproduce.report import Table
from scripts.reproduce.secoc_points import LENGTHS, ROUNDS
from scripts.reproduce.windows import labelled_items
from spacy_treecrf import SECOCCRF, BoostedCRF
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.corpora import LabelledSequence
from spacy_treecrf.corpora.synthetic import SETTINGS, Synthetic, synthetic_model, synthetic_splits

WIDTHS = (1, 3, 5, 7)
# Where a window tells nearly all, and there is enough data to learn it from.
WIDE = 7
MANY_SEQUENCES, QUICK_SEQUENCES = 10_000, 300
MANY_LEAVES = 256

Matrix = npt.NDArray[np.float64]


def matrices(model: Synthetic) -> tuple[Matrix, Matrix]:
    """P(label | label before), shape (n_labels, n_labels), and P(observation | label)."""
    shown, followed = model.neighbours()
    transitions = model.p_l * np.eye(model.n_labels)
    observations = np.zeros((model.n_labels, model.n_observations))
    for label in range(model.n_labels):
        transitions[label, followed[label]] = (1 - model.p_l) / model.k_l
        observations[label, shown[label]] = (1 - model.p_o) / model.k_o
        observations[label, label % model.n_observations] = model.p_o
    return transitions, observations


def posteriors(model: Synthetic, words: Sequence[str], width: int | None) -> Matrix:
    """P(y_t | x_{t-h} .. x_{t+h}, t) with h = width // 2; None: given all x.

    shape: (len(words), n_labels)
    """
    transitions, observations = matrices(model)
    seen = [observations[:, int(word[1:])] for word in words]  # P(x_t | label) of each t
    half = len(seen) if width is None else width // 2
    prior = np.full(model.n_labels, 1 / model.n_labels)  # P(y_begin)
    found = np.empty((len(seen), model.n_labels))
    for t in range(len(seen)):
        begin, end = max(0, t - half), min(len(seen), t + half + 1)
        if begin > 0:
            prior = prior @ transitions
        forward = prior * seen[begin]
        for likelihood in seen[begin + 1 : t + 1]:
            forward = (forward @ transitions) * likelihood
        backward = np.ones(model.n_labels)
        for likelihood in reversed(seen[t + 1 : end]):
            backward = transitions @ (likelihood * backward)
        found[t] = forward * backward
    sums: Matrix = found.sum(axis=1, keepdims=True)
    return found / sums


def best_possible(
    model: Synthetic, sequences: Sequence[LabelledSequence], width: int | None
) -> float:
    """Accuracy in percent of the most probable labels given a window, and the true parameters.

    No model of a window of that width has a higher expected accuracy: it does not even know t.
    """
    right = [
        best == int(label[1:])
        for sequence in sequences
        for best, label in zip(
            posteriors(model, sequence.words, width).argmax(axis=1),
            sequence.labels["tag"],
            strict=True,
        )
    ]
    return 100 * float(np.mean(right))


def table_of_limits(seeds: Sequence[int]) -> Table:
    rows = []
    for setting in SETTINGS:
        limits = []
        for width in (*WIDTHS, None):
            each = [
                best_possible(
                    synthetic_model(setting, seed), synthetic_splits(setting, seed)["test"], width
                )
                for seed in seeds
            ]
            limits.append(f"{np.mean(each):.1f}")
        say(f"{setting}: at most {', '.join(limits)} %")
        rows.append([setting, *limits])
    columns = ["setting", *(f"window {width} %" for width in WIDTHS), "all observations %"]
    return Table("Synthetic data: what the test observations tell at most", columns, rows)


@dataclass(frozen=True)
class Plenty:
    """Accuracies in percent, one for each seed, of published variants with a wide window."""

    n: int  # training sequences
    iid: list[float]
    independent: list[float]
    cascade: list[float]  # c-SECOC(1)


def plenty(quick: bool, seeds: Sequence[int]) -> Plenty:
    """The variants on "both" with many training sequences."""
    n = QUICK_SEQUENCES if quick else MANY_SEQUENCES
    found = Plenty(n, [], [], [])
    for seed in seeds:
        train = labelled_items(synthetic_model("both", seed).sample(n), "tag", WIDE)
        test = labelled_items(synthetic_splits("both", seed)["test"], "tag", WIDE)
        for accuracies, settings in zip(
            (found.iid, found.independent, found.cascade), variants(), strict=True
        ):
            model = SECOCCRF(bits=max(LENGTHS), decoding="l1", training="columns", **settings)
            accuracies.append(100 * model.fit(*train).score(*test))
            say(f"both, window {WIDE}, {n} sequences, seed {seed}: {accuracies[-1]:.2f} %")
    return found


def variants() -> Iterator[dict[str, object]]:
    """The settings of iid, i-SECOC and c-SECOC(1)."""
    base = BoostedCRF(rounds=ROUNDS, leaves=MANY_LEAVES)
    yield {"base": BoostedCRF(rounds=ROUNDS, leaves=MANY_LEAVES, order=0)}
    yield {"base": base}
    yield {"base": base, "history": 1, "cascade": "training"}
