"""Labels that are partly wrong as a distribution over the true ones, which a model learns from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from spacy_treecrf.audit.auditing import FeatureDicts, Labels, groups_of, refuse_spill
from spacy_treecrf.audit.cross_fitting import CrossFit, Plan, Report
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.noisy_labels import Judged, true_labels
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators.checking import checked
from spacy_treecrf.estimators.soft_targets import Lattice

# Models that judge learn little by heart.
JUDGES_ROUNDS = 20
MOST_SHARP = 10.0
MOST_BYTES = 2**32  # of lattices


# Many parameters: how to cross-fit, each with a default.
def denoise_sequences(
    X: FeatureDicts,
    y: Labels,
    *,
    noise: float = 0.2,
    sharpness: float = 2.0,
    documents: Sequence[Any] | None = None,
    folds: int = 5,
    members: int = 3,
    seed: int = 0,
    report: Report | None = None,
    **settings: Any,
) -> list[Lattice]:
    """What the true labels of sequences probably are, if some of the given ones are wrong.

    A model with soft_labels="distill" learns from the lattices. Models that have not seen a
    sequence say how probable its labels are, and how often labels are given for others is learned
    from all of them by EM.

    X, y: Feature dicts and labels, as estimators take them; None is a position that is not
        annotated.
    noise: About which share of the labels is wrong; a first guess.
    sharpness: The power of the models' probabilities. Models that have learned from wrong labels
        are less sure than they could be; 1 takes them at their word.
    documents: What stays together while it is judged; by default each sequence is alone, which is
        best where errors are independent. Name documents if their errors are repeated.
    folds, members, seed: The parts, the models for each of them, and the seed of both.
    report: A function that is told how many rounds are done, and of how many.
    settings: Settings of `BoostedCRF` for the models that judge; 20 rounds, unless told otherwise.
    """
    _check(noise, sharpness)
    X, y = checked(X, y, "X", "y")
    chosen = Settings(**{"rounds": JUDGES_ROUNDS, "seed": seed, **settings})
    _check_settings(chosen)
    labels = sorted({label for own in y for label in own if label is not None})
    if not labels:
        raise ValueError("treecrf: nothing is annotated in y; pass labels to judge")
    _check_size(sum(map(len, y)), len(labels))
    columns, offsets, feature_ids, numeric = fit_columns(
        X, min_count=chosen.min_count, max_bins=chosen.max_bins, missing=chosen.missing
    )
    ids = {label: i for i, label in enumerate(labels)}
    flat = [UNKNOWN_LABEL if label is None else ids[label] for own in y for label in own]
    weights = np.ones(len(flat), np.float32)
    data = Sequences(offsets, feature_ids, numeric, np.array(flat, np.int32), weights)
    plan = Plan(folds, members, seed=seed)
    fit = CrossFit(data, labels, columns, groups_of(documents, len(y)), chosen, plan)
    with Workers(chosen.threads) as workers:
        judged, order = [], []
        for held_out in fit.held_out(workers, report):
            scored = held_out.scored
            judged.append(Judged(scored.data, scored.scores, scored.chain))
            order += held_out.sequences.tolist()
        pairs, _ = true_labels(judged, noise, sharpness, workers)
    found = [
        Lattice(labels, own[first:last].sum(axis=1), own[first + 1 : last].copy())
        for part, own in zip(judged, pairs, strict=True)
        for first, last in pairwise(part.data.offsets.tolist())
    ]
    return [found[i] for i in np.argsort(order)]


def _check_settings(settings: Settings) -> None:
    if settings.order > 1:
        raise ValueError(f"treecrf: order is {settings.order}; use 0 or 1 to judge noisy labels")
    if settings.constraints == "observed":
        raise ValueError(
            "treecrf: constraints is 'observed', and models that judge have observed other parts "
            "of the data; use 'none', 'bio' or 'biluo'"
        )
    refuse_spill(settings)


def _check_size(n_rows: int, n_labels: int) -> None:
    size = 4 * n_rows * n_labels**2
    if size > MOST_BYTES:
        raise ValueError(
            f"treecrf: the lattices of {n_rows:,} positions with {n_labels} labels take "
            f"{size / 2**30:.1f} GB, and {MOST_BYTES / 2**30:g} are the most; pass fewer sequences"
        )


def _check(noise: float, sharpness: float) -> None:
    if not 0.0 < noise < 1.0:
        raise ValueError(f"treecrf: noise is {noise}; use more than 0, and less than 1")
    if not 0.0 < sharpness <= MOST_SHARP:
        raise ValueError(
            f"treecrf: sharpness is {sharpness}; use more than 0, and up to {MOST_SHARP:g}"
        )
