"""Labels as users name them (PERSON), and labels of sequences (B-PERSON, ..., O)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spacy_treecrf.labels.biluo import OUTSIDE, biluo_labels, prefix_and_name
from spacy_treecrf.pipeline.tasks.task import Task


def sequence_labels(task: Task, names: Iterable[str]) -> list[str]:
    """The labels of sequences that a model needs to predict these names."""
    if task.constraints != "biluo":
        return list(names)
    return [OUTSIDE, *(label for name in names for label in biluo_labels(name))]


def names_of(task: Task, labels: Sequence[str | None]) -> list[str]:
    """The names behind labels of sequences, each once, in order of appearance."""
    known = (label for label in labels if label is not None)
    if task.constraints == "biluo":
        known = (name for _, name in map(prefix_and_name, known) if name)
    return list(dict.fromkeys(known))
