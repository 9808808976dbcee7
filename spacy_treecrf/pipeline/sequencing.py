"""Cutting docs into sequences: a doc is one sequence, or each of its sentences is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc

from spacy_treecrf.pipeline.punctuation import punctuation_starts
from spacy_treecrf.pipeline.tasks.span_tasks import EntsTask
from spacy_treecrf.pipeline.tasks.task import Task, token_values

MODES = ("auto", "punctuation", "doc", "sentence")
# That are annotated at a time, for each thread. Words that repeat within a block share work.
BLOCK_TOKENS = 32768


def mode_of(setting: str | None, task: Task) -> str:
    """The mode of setting `sequence`; where it is None, the one that serves the task.

    Docs of entities are mostly prose: sentences, also where nobody has marked them.
    """
    if setting is None:
        return "punctuation" if isinstance(task, EntsTask) else "auto"
    if setting not in MODES:
        raise ValueError(
            f"treecrf: setting 'sequence' is {setting!r}; use 'auto' (sentences where a doc has "
            "boundaries, else the doc), 'punctuation' (sentences by punctuation where it has "
            "none), 'doc', 'sentence', or null, which is 'punctuation' for entities, else 'auto'"
        )
    return setting


def starts_of(doc: Doc, mode: str) -> npt.NDArray[np.int64]:
    """The first token of each sequence of a doc; none in an empty doc."""
    if not len(doc):
        return np.zeros(0, np.int64)
    whole = np.zeros(1, np.int64)
    if mode == "doc":
        return whole
    if not doc.has_annotation("SENT_START"):
        if mode == "auto":
            return whole
        if mode == "punctuation":
            return punctuation_starts(doc)
        raise ValueError(
            "treecrf: sequence='sentence' needs sentence boundaries; put a sentencizer, senter "
            "or parser in front of the pipe, or use sequence='punctuation'"
        )
    starts = np.flatnonzero(token_values(doc, "SENT_START") == 1)
    return starts if len(starts) and starts[0] == 0 else np.append(whole, starts)


def by_tokens(docs: Sequence[Doc], n_tokens: int) -> Iterator[Sequence[Doc]]:
    """The docs in parts of about so many tokens, which have a part's arrays in memory at a time."""
    first = count = 0
    for i, doc in enumerate(docs):
        if count >= n_tokens:
            yield docs[first:i]
            first, count = i, 0
        count += len(doc)
    yield docs[first:]


def cut(docs: Sequence[Doc], mode: str) -> npt.NDArray[np.int64]:
    """The offsets of all sequences of the docs, laid end to end. shape: (n_sequences + 1,)"""
    if len(docs) == 1:
        return np.array([*starts_of(docs[0], mode).tolist(), len(docs[0])], np.int64)
    firsts = []
    total = 0
    for doc in docs:
        firsts.append(starts_of(doc, mode) + total)
        total += len(doc)
    return np.concatenate([*firsts, [total]]).astype(np.int64)
