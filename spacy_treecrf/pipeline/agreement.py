"""Words that a document repeats: what is said of them elsewhere in it, as evidence.

A name that one sentence leaves open is often clear from another one (Krishnan and Manning, 2006,
"An effective two-stage model for exploiting non-local dependencies in named entity recognition").
The second stage here is not learned. A capitalised word moves towards what the model says, on
average, where the document has the word: a logarithmic opinion pool of its own probabilities of
types, P(type)^(1 - a), and of the mean ones, P(type)^a. Log scores are added to those of the
model for it, so labels and probabilities are exact for the chain that follows.

Its weight is setting `agreement` of a pipe, or what the pipe was initialized with. That stands in
the pipe's cfg, so that pipes that were stored before there was a default label as they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.attrs import LOWER, ORTH  # type: ignore[import-not-found]
from spacy.tokens import Doc

from spacy_treecrf.pipeline.tasks.span_tasks import EntsTask
from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.models.predictor import ScoredSequences

AGREEMENT = "agreement"  # the setting, and its place in the pipe's cfg
OF_ENTITIES = 0.5  # found on held-out documents of the CoNLL-2003 training file
NONE = 0.0
# A place counts for so much more where also the word before is the same, and the word behind.
SAME_NEIGHBOUR = 2.0
LEAST = 1e-2  # what is added to probabilities of types: none is ever ruled out
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.uint64]


class Repeated(NamedTuple):
    """Rows of words that a document repeats with a capital, and which of them go together.

    groups: For the word alone, and with its neighbours, the weight of a place and the group of
    each row.
    """

    rows: npt.NDArray[np.int64]
    groups: list[tuple[float, npt.NDArray[np.int64]]]


def in_agreement(
    docs: Sequence[Doc], scored: ScoredSequences, labels: Sequence[str], weight: float
) -> ScoredSequences:
    """The scored sequences of docs, with so much of the evidence of words that they repeat."""
    repeated = repeated_words(docs, scored.data.offsets) if scored.data.n_rows else None
    if repeated is None:
        return scored
    evidence = evidence_of(repeated, scored.marginals(), types_of(labels))
    return scored.with_evidence(np.float32(weight) * evidence)


def repeated_words(docs: Sequence[Doc], offsets: npt.NDArray[np.int64]) -> Repeated | None:
    """The capitalised words that any of the docs has twice or more; None if there are none.

    offsets: of the sequences of the docs, laid end to end; neighbours are in the same sequence.
    """
    values: npt.NDArray[np.uint64] = np.concatenate([doc.to_array([ORTH, LOWER]) for doc in docs])
    orth, lower = values[:, 0], values[:, 1]
    if len(docs) == 1 and _are_different(lower[orth != lower].tolist()):
        return None
    in_doc = np.repeat(np.arange(1, len(docs) + 1, dtype=np.uint64), [len(doc) for doc in docs])
    keys = _joined(lower, in_doc)
    rows = np.flatnonzero(orth != lower)
    _, group, counts = np.unique(keys[rows], return_inverse=True, return_counts=True)
    rows = rows[counts[group] > 1]
    if not len(rows):
        return None
    # Beyond the ends of sequences there are words that nothing else has.
    padded = np.arange(1, len(keys) + 1, dtype=np.uint64)
    before, after = padded.copy(), padded.copy()
    before[1:], after[:-1] = lower[:-1], lower[1:]
    first = offsets[:-1][np.diff(offsets) > 0]
    before[first] = padded[first]
    last = offsets[1:][np.diff(offsets) > 0] - 1
    after[last] = padded[last]
    groups = [
        (1.0, _numbers(keys[rows])),
        (SAME_NEIGHBOUR, _numbers(_joined(keys, before)[rows])),
        (SAME_NEIGHBOUR, _numbers(_joined(keys, after)[rows])),
    ]
    return Repeated(rows, groups)


def evidence_of(
    repeated: Repeated, marginals: npt.NDArray[np.float64], types: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Log scores of labels, 0 at words that are not repeated. shape: (n_rows, n_labels)

    Of each type, the log of its mean probability at all places of the word in the document,
    minus that of its probability at the word itself.

    marginals: P(label) of each row. types: of each label.
    """
    n_types = int(types.max()) + 1
    own = np.zeros((len(repeated.rows), n_types))
    for label, kind in enumerate(types.tolist()):
        own[:, kind] += marginals[repeated.rows, label]
    total, places = own.copy(), np.ones(len(own))  # a row counts once for itself
    for weight, group in repeated.groups:
        sums = np.stack([np.bincount(group, own[:, k]) for k in range(n_types)], axis=1)
        total += weight * (sums[group] - own)
        places += weight * (np.bincount(group)[group] - 1)
    mean = total / places[:, None]
    evidence = np.zeros(marginals.shape, np.float32)
    evidence[repeated.rows] = np.log((np.maximum(mean, 0.0) + LEAST) / (own + LEAST))[:, types]
    return evidence


def types_of(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """The type of each BILUO label as a number: B-PER and U-PER have that of PER, O has its own."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(label[2:], len(numbers)) for label in labels], np.int64)


def check_weight(weight: float | None, task: Task) -> None:
    """Refuse a setting that is no weight, or one for a task without spans."""
    if weight is None:
        return
    if not is_weight(weight):
        raise ValueError(f"treecrf: setting 'agreement' is {weight}; use 0 to 1, or null")
    if weight and task.constraints != "biluo":
        raise ValueError(
            f"treecrf: setting 'agreement' is {weight}, and the task has no spans; use 0 or null"
        )


def is_weight(value: Any) -> bool:
    """Whether a value is a number from 0 to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0.0 <= value <= 1.0


def initial_weight(setting: float | None, task: Task) -> float:
    """The weight of a newly initialized pipe: the setting, or where it is None that of the task.

    Names of entities mean the same all over a document; of other spans nothing is known.
    """
    if setting is not None:
        return setting
    return OF_ENTITIES if isinstance(task, EntsTask) else NONE


def stored_weight(cfg: dict[str, Any]) -> float:
    """The weight that a pipe was initialized with; 0 if there was no default then."""
    return float(cfg.get(AGREEMENT, NONE))


def _are_different(words: list[int]) -> bool:
    return len(set(words)) == len(words)


def _joined(a: Keys, b: Keys) -> Keys:
    """A key for each pair of keys."""
    joined: Keys = (a ^ (b * _FACTOR)) * _FACTOR
    return joined ^ (joined >> np.uint64(32))


def _numbers(keys: Keys) -> npt.NDArray[np.int64]:
    """The keys as numbers from 0."""
    _, numbers = np.unique(keys, return_inverse=True)
    return numbers
