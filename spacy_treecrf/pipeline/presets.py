"""Labels that are on docs already and must stay, as a mask of the labels that are allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc

from spacy_treecrf.labels.biluo import OUTSIDE, without_cut_spans
from spacy_treecrf.pipeline.sequencing import starts_of
from spacy_treecrf.pipeline.tasks.task import Task


def allowed_labels_on(
    docs: Sequence[Doc], task: Task, sequence: str, names: Sequence[str]
) -> npt.NDArray[np.uint8] | None:
    """A mask (n_tokens, n_labels) with 0 where a preset label rules out a label.

    None if the docs have nothing that must stay. sequence: how docs are cut into sequences.
    names: labels by id.
    """
    presets = [task.preset(doc) for doc in docs]
    if all(preset is None for preset in presets):
        return None
    ids = {label: i for i, label in enumerate(names)}
    has_spans = task.constraints == "biluo"
    fallback = ids.get(OUTSIDE) if has_spans else None
    rows: list[int] = []
    kept: list[int] = []
    row = 0
    for doc, preset in zip(docs, presets, strict=True):
        if preset is not None:
            if has_spans:
                preset = without_cut_spans(preset, starts_of(doc, sequence).tolist(), OUTSIDE)
            for i, label in enumerate(preset):
                own = ids.get(label, fallback) if label is not None else None
                if own is not None:
                    rows.append(row + i)
                    kept.append(own)
        row += len(doc)
    if not rows:
        return None
    allowed = np.ones((row, len(names)), np.uint8)
    allowed[rows] = 0
    allowed[rows, kept] = 1
    return allowed
