"""Evidence from other places of a document that speak of the same: a logarithmic opinion pool.

A place moves from its own probabilities of types, P(type)^(1 - a), towards the mean ones of all
places that go together with it, P(type)^a. Log scores are added to those of the model for it, so
labels and probabilities are exact for the chain that follows. `agreement` and `parallels` tell
which places go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.attrs import LOWER, ORTH  # type: ignore[import-not-found]
from spacy.tokens import Doc

LEAST = 1e-2  # what is added to probabilities of types: none is ever ruled out
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]


class Words(NamedTuple):
    """The words of some docs, laid end to end, by spaCy's numbers. shapes: (n_words,)"""

    orth: Keys
    lower: Keys
    in_doc: Keys  # the number of each word's doc, from 1


class Together(NamedTuple):
    """Rows that have others to go together with, and which these are.

    groups: Of one way or more to go together, the weight of a place and the group of each row.
    """

    rows: Rows
    groups: list[tuple[float, Rows]]


def words_of(docs: Sequence[Doc]) -> Words:
    attrs = [ORTH, LOWER]
    values: Keys
    if len(docs) == 1:
        values = docs[0].to_array(attrs)  # type: ignore[assignment]
        return Words(values[:, 0], values[:, 1], np.ones(len(values), np.uint64))
    values = np.concatenate([doc.to_array(attrs) for doc in docs])
    numbers = np.arange(1, len(docs) + 1, dtype=np.uint64)
    in_doc = np.repeat(numbers, [len(doc) for doc in docs])
    return Words(values[:, 0], values[:, 1], in_doc)


def evidence_of(
    together: Together, marginals: npt.NDArray[np.float64], types: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Log scores of labels, 0 at rows that have no others. shape: (n_rows, n_labels)

    Of each type, the log of its mean probability at all places that go together, minus that of
    its probability at the place itself.

    marginals: P(label) of each row. types: of each label.
    """
    n_types = int(types.max()) + 1
    own = np.zeros((len(together.rows), n_types))
    for label, kind in enumerate(types.tolist()):
        own[:, kind] += marginals[together.rows, label]
    total, places = own.copy(), np.ones(len(own))  # a row counts once for itself
    for weight, group in together.groups:
        sums = np.stack([np.bincount(group, own[:, k]) for k in range(n_types)], axis=1)
        total += weight * (sums[group] - own)
        places += weight * (np.bincount(group)[group] - 1)
    mean = total / places[:, None]
    evidence = np.zeros(marginals.shape, np.float32)
    evidence[together.rows] = np.log((np.maximum(mean, 0.0) + LEAST) / (own + LEAST))[:, types]
    return evidence


def types_of(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """The type of each BILUO label as a number: B-PER and U-PER have that of PER, O has its own."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(label[2:], len(numbers)) for label in labels], np.int64)


def joined_keys(a: Keys, b: Keys) -> Keys:
    """A key for each pair of keys."""
    joined: Keys = (a ^ (b * _FACTOR)) * _FACTOR
    return joined ^ (joined >> np.uint64(32))


def numbered(keys: Keys) -> Rows:
    """The keys as numbers from 0."""
    _, numbers = np.unique(keys, return_inverse=True)
    return numbers
