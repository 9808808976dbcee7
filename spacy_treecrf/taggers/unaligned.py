"""Gold annotation of docs that the tokens of a pipeline cannot spell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spacy.tokens import Span
from spacy.training import Example

from spacy_treecrf.labels.biluo import Label, TokenSpan, biluo_spans
from spacy_treecrf.pipeline.tasks import Task
from spacy_treecrf.pipeline.tasks.task import same_tokens


@dataclass(frozen=True)
class Unaligned:
    """What is lost of an example's gold annotation, because its docs have different tokens."""

    spans: list[TokenSpan]  # the tokens of the pipeline that lost spans touch, and their names
    everything: bool = False  # whether the doc is annotated, and no token of the pipeline


def unaligned(task: Task, example: Example, labels: Sequence[Label]) -> Unaligned:
    """What labels of the pipeline's tokens lack. labels: Those that the task has read."""
    if same_tokens(example):
        return Unaligned([])
    reference = example.reference
    gold = task.gold(Example(reference, reference))
    everything = any(gold) and not any(labels)
    if task.constraints != "biluo":
        return Unaligned([], everything)
    spelled = set(biluo_spans(labels))
    lost: list[TokenSpan] = []
    for start, end, name in biluo_spans(gold):
        found = example.get_aligned_spans_y2x([Span(reference, start, end, label=name)])
        if not any((span.start, span.end, name) in spelled for span in found):
            touched = example.alignment.y2x[start:end].tolist()
            first, last = (touched[0], touched[-1] + 1) if touched else (0, 0)
            lost.append((first, last, name))
    return Unaligned(lost, everything)
