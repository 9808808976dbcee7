"""What the training data holds for a pipe, in lines for people; `spacy debug data` shows them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from spacy.util import logger
from wasabi import msg

from spacy_treecrf.labels.biluo import Label, biluo_spans
from spacy_treecrf.pipeline.tasks.task import Task

FEW = 10  # examples of a label: with less there is little to learn from
MOST_LABELS = 20


def describe_training_data(
    name: str, task: Task, gold: Sequence[list[Label]], learned: Sequence[list[Label]]
) -> None:
    """Tell what a pipe finds in the training data: on the screen of `spacy debug data`, else a log.

    spaCy's command describes the annotation of its own pipes only, but initializes all of them.
    gold: The labels of the tokens of each training doc. learned: Those that can be learned, without
    spans that reach over the end of a sequence.
    """
    if sys.argv[1:3] != ["debug", "data"]:
        for line in (*_found(task, gold), *_doubtful(task, gold, learned)):
            logger.info("treecrf: %s: %s", name, line)
        return
    msg.divider(f"Training data of {name!r}")
    for line in _found(task, gold):
        msg.info(line)
    for line in _doubtful(task, gold, learned):
        msg.warn(line)


def _found(task: Task, gold: Sequence[list[Label]]) -> list[str]:
    counts = _counts(task, gold)
    listed = [f"{label} {n:,}" for label, n in counts.most_common(MOST_LABELS)]
    if len(counts) > MOST_LABELS:
        listed.append(f"and {len(counts) - MOST_LABELS} more")
    n_tokens = sum(len(labels) for labels in gold)
    what = "spans" if task.constraints == "biluo" else "tokens"
    return [
        f"{len(gold):,} docs, {n_tokens:,} tokens; task {task}",
        f"{counts.total():,} {what} of {len(counts)} labels: {', '.join(listed)}",
    ]


def _doubtful(task: Task, gold: Sequence[list[Label]], learned: Sequence[list[Label]]) -> list[str]:
    lines = []
    empty = sum(all(label is None for label in labels) for labels in gold)
    if empty:
        lines.append(f"{empty:,} docs have no annotation that this task reads")
    unknown = sum(labels.count(None) for labels in gold if any(labels))
    if unknown:
        lines.append(
            f"{unknown:,} tokens of annotated docs are not annotated, or not aligned with the "
            "tokens of the annotation; they are learned as unknown"
        )
    cut = _counts(task, gold).total() - _counts(task, learned).total()
    if cut:
        lines.append(
            f"{cut:,} spans reach over the end of a sentence and cannot be learned; with "
            'sequence = "doc" a doc is not cut into sentences'
        )
    few = [f"{label} {n}" for label, n in reversed(_counts(task, gold).most_common()) if n < FEW]
    if few:
        lines.append(f"fewer than {FEW} examples: {', '.join(few[:MOST_LABELS])}")
    return lines


def _counts(task: Task, gold: Sequence[list[Label]]) -> Counter[str]:
    """How often each label occurs, by its name as users know it."""
    if task.constraints == "biluo":
        return Counter(name for labels in gold for _, _, name in biluo_spans(labels))
    return Counter(label for labels in gold for label in labels if label is not None)
