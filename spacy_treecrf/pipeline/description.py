"""A pipe in one line, for people: what `repr` shows of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when a model is made or read, not before
    from spacy_treecrf.models.model import SequenceModel

MOST_NAMES = 8
_PLACE = re.compile(r"\d*(\[-?\d+\])?$")


def description_of(
    name: str, task: Task, labels: Sequence[str], learned: SequenceModel | None
) -> str:
    """The name of a pipe, its task, labels, rounds and features.

    labels: As users name them. learned: The pipe's model; None where it has learned nothing.
    """
    parts = [f"task {task}", f"{len(labels)} labels ({_listed(labels)})" if labels else "no labels"]
    if learned is None:
        parts.append("not trained")
    else:
        columns = learned.columns
        n_numeric = len(columns.numeric_names)
        kinds = _kinds([*columns.slot_keys, *columns.numeric_names])
        numeric = f" and {n_numeric} numeric columns" if n_numeric else ""
        parts.append(f"{learned.rounds} rounds")
        parts.append(f"{len(columns.feature_names)} features{numeric} of {_listed(kinds)}")
    return f"<TreeCRF {name!r}: {'; '.join(parts)}>"


def _kinds(names: Iterable[str]) -> list[str]:
    """What columns tell, without offsets and lengths: prefix2[-1] and prefix3[0] are prefix."""
    return list(dict.fromkeys(_PLACE.sub("", name) for name in names))


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
