"""Small random training sets: as label problems to enumerate, and as features to boost on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from tests.engine.enumeration import Problem, enumerate_paths, random_problem


def sequences_of(offsets, labels, weights=None) -> Sequences:
    """Sequences without any feature."""
    n_rows = int(offsets[-1])
    return Sequences(
        np.asarray(offsets, np.int64),
        np.zeros((n_rows, 0), np.int32),
        np.zeros((n_rows, 0), np.uint8),
        np.asarray(labels, np.int32),
        np.ones(n_rows, np.float32) if weights is None else np.asarray(weights, np.float32),
    )


@dataclass(frozen=True)
class Annotation:
    """A problem with labels (some of them unknown) and a weight for each sequence."""

    problem: Problem
    data: Sequences

    def enumerate(self, s, scores=None, chain=None):
        """All label sequences of sequence s, and those that its annotation allows."""
        rows = self.problem.rows()[s]
        scores = self.problem.scores if scores is None else scores
        chain = chain or self.problem.chain
        labels = self.data.labels[rows, None]
        allowed = (labels == UNKNOWN_LABEL) | (labels == np.arange(chain.n_labels))
        free = enumerate_paths(scores[rows], chain)
        return free, enumerate_paths(scores[rows], chain, allowed.astype(np.uint8))

    def log_likelihood(self, scores=None, chain=None) -> float:
        total = 0.0
        for s, rows in enumerate(self.problem.rows()):
            free, clamped = self.enumerate(s, scores, chain)
            total += float(self.data.weights[rows.start]) * (clamped.log_z - free.log_z)
        return total


def random_annotation(
    seed, order, n_labels, lengths, *, joint, unknown=0.0, weighted=False, forbidden=0.0, scale=1.0
) -> Annotation:
    """Labels are drawn from the possible label sequences; the last sequence may be unknown."""
    problem = random_problem(
        seed, order, n_labels, lengths, joint=joint, forbidden=forbidden, scale=scale
    )
    chain = problem.chain
    # Label 0 is always possible, so that each sequence has a path.
    for array in (chain.start[:1], chain.trans[0, :1], chain.end[:1]):
        array[~np.isfinite(array)] = 0.0
    rng = np.random.default_rng(seed)
    chain = Chain(order, to_grid(chain.start), to_grid(chain.trans), to_grid(chain.end))
    problem = Problem(to_grid(problem.scores), problem.offsets, chain, problem.allowed)
    labels = []
    for rows in problem.rows():
        paths = enumerate_paths(problem.scores[rows], chain).paths
        labels.extend(paths[rng.integers(len(paths))])
    labels = np.array(labels)
    if unknown:
        labels[rng.random(len(labels)) < unknown] = UNKNOWN_LABEL
        labels[problem.rows()[-1]] = UNKNOWN_LABEL
    weights = np.repeat(rng.uniform(0.3, 3.0, len(lengths)) if weighted else 1.0, 1)
    weights = np.repeat(np.broadcast_to(weights, len(lengths)), lengths)
    return Annotation(problem, sequences_of(problem.offsets, labels, weights))


@dataclass(frozen=True)
class Training:
    columns: Columns
    data: Sequences
    labels: list[str]


def random_training(
    seed, n_sequences=30, n_labels=3, longest=7, *, unknown=0.0, weighted=False, noise=0.2
) -> Training:
    """Words, a bag and two numbers; labels depend on them and on the label before."""
    rng = np.random.default_rng(seed)
    X, y, weights = [], [], []
    for _ in range(n_sequences):
        length = int(rng.integers(1, longest + 1))
        words = rng.integers(0, 8, length)
        sizes = rng.normal(size=length)
        items, labels = [], []
        for t, word in enumerate(words):
            before = labels[-1] if labels else 0
            label = int(word + before + (sizes[t] > 0)) % n_labels
            labels.append(label if rng.random() > noise else int(rng.integers(n_labels)))
            items.append(
                {
                    "word": f"w{word}",
                    "before": f"w{words[t - 1]}" if t else "none",
                    "bag": [f"b{b}" for b in set(rng.integers(0, 5, 2).tolist())],
                    "size": float(sizes[t]),
                    "other": float(rng.normal()) if rng.random() < 0.8 else None,
                }
            )
        X.append(items)
        y.extend(labels)
        weights.extend([rng.uniform(0.3, 3.0) if weighted else 1.0] * length)
    columns, offsets, feature_ids, numeric = fit_columns(X, min_count=2)
    labels = np.array(y, np.int32)
    if unknown:
        labels[rng.random(len(labels)) < unknown] = UNKNOWN_LABEL
        labels[offsets[-2] :] = UNKNOWN_LABEL
    data = Sequences(offsets, feature_ids, numeric, labels, np.array(weights, np.float32))
    return Training(columns, data, [f"L{k}" for k in range(n_labels)])
