"""Labels as users name them (PERSON), and labels of sequences (B-PERSON, ..., O)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

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


def check_label(label: str) -> None:
    """Refuse what cannot be a name of a label."""
    if not isinstance(label, str) or not label:
        raise ValueError(f"treecrf: cannot add the label {label!r}; use a text")


def unknown_label(label: str, pipe: str, labels: Sequence[str]) -> ValueError:
    """The error about a label that a pipe does not have."""
    known = ", ".join(labels) or "none"
    if not label:
        return ValueError(f"treecrf: the span has no label; name one that {pipe!r} has: {known}")
    near = get_close_matches(label, labels, 1)
    hint = f"did you mean {near[0]!r}?" if near else "use one of these"
    return ValueError(f"treecrf: the pipe {pipe!r} has no label {label!r}, but {known}; {hint}")
