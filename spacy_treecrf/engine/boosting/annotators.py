"""The noise model of annotators: P(label given | true label), learned with the CRF by EM.

A given label is evidence of the true one: the log weights of its table are a column of its
annotator's confusion matrix. Rounds of boosting raise the likelihood of the given labels under
these weights; between blocks of rounds, the confusions are estimated anew from what the model,
clamped to the evidence, expects of the true labels. Neither lowers the objective, which is the
log-likelihood of the given labels plus the log of the confusions' prior.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels

# Rounds between two estimates: one costs about as much as a round's inference.
ROUNDS_PER_ESTIMATE = 5
# What a confusion is before anything is learned: most labels are given right, others as often as
# they are given at all. It counts as so many annotated positions of each true label.
FIRST_SHARE_RIGHT = 0.8
PRIOR_ROWS = 10.0


def as_evidence(data: Sequences, annotator: npt.NDArray[np.int64], n_labels: int) -> Sequences:
    """The sequences with labels that are what annotators say.

    annotator: (n_sequences,), the number of each one's annotator, from 0.
    """
    known = data.labels != UNKNOWN_LABEL
    share = np.bincount(data.labels[known], minlength=n_labels) / max(1, int(known.sum()))
    prior = FIRST_SHARE_RIGHT * np.eye(n_labels) + (1.0 - FIRST_SHARE_RIGHT) * share
    of_row = np.repeat(annotator, np.diff(data.offsets))
    confusions = np.broadcast_to(prior, (int(annotator.max()) + 1, n_labels, n_labels))
    soft = replace(
        SoftLabels.none(data.n_rows, n_labels),
        node_table=np.where(known, of_row * n_labels + data.labels, NO_TABLE).astype(np.int32),
        nodes=_tables_of(confusions),
        prior=prior,
    )
    return replace(data, labels=np.full(data.n_rows, UNKNOWN_LABEL, np.int32), soft=soft)


def estimated(
    soft: SoftLabels, expected: npt.NDArray[np.floating], weights: npt.NDArray[np.float32]
) -> SoftLabels:
    """The soft labels with confusions from what is expected of true labels: EM's M-step.

    expected: (n_rows, n_labels), P(true label | given labels). weights: (n_rows,)
    """
    assert soft.prior is not None
    n_labels = len(soft.prior)
    counts = np.zeros(soft.nodes.shape)
    given = soft.node_table != NO_TABLE
    np.add.at(counts, soft.node_table[given], expected[given] * weights[given, None])
    by_true = counts.reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
    smoothed = by_true + PRIOR_ROWS * soft.prior
    return replace(soft, nodes=_tables_of(smoothed / smoothed.sum(axis=2, keepdims=True)))


def confusions_of(soft: SoftLabels) -> npt.NDArray[np.float64]:
    """P(given | true) of each annotator. shape: (n_annotators, n_labels, n_labels), true first"""
    n_labels = soft.nodes.shape[1]
    tables: npt.NDArray[np.float64] = np.exp(soft.nodes.astype(float))
    tables = tables.reshape(-1, n_labels, n_labels)
    return tables.transpose(0, 2, 1)


def log_prior(soft: SoftLabels) -> float:
    """What the prior of the confusions adds to the objective, up to a constant."""
    assert soft.prior is not None
    likely = np.log(np.maximum(confusions_of(soft), 1e-300))
    return float(np.sum(PRIOR_ROWS * soft.prior * likely))


def _tables_of(confusions: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Log weights of true labels, a table for each annotator and given label."""
    with np.errstate(divide="ignore"):
        tables = np.log(confusions.transpose(0, 2, 1).reshape(-1, confusions.shape[1]))
    return np.asarray(tables, np.float32)
