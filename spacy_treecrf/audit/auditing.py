"""The audit of labelled sequences: cross-fitted judgements, joined and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacy_treecrf.audit.cross_fitting import CrossFit, Groups, Plan, Report
from spacy_treecrf.audit.findings import Audit
from spacy_treecrf.audit.judging import Annotation, FoldJudgement, Judge
from spacy_treecrf.audit.phrases import Phrases
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators.checking import checked
from spacy_treecrf.labels.biluo import Label, TokenSpan, biluo_labels, biluo_spans
from spacy_treecrf.labels.schemes import are_span_labels, as_biluo

FeatureDicts = Sequence[Sequence[dict[str, Any]]]
Labels = Sequence[Sequence[Label]]
UNTYPED = "span"  # the type of spans whose labels have none, as B and I alone


@dataclass(frozen=True)
class LabelledData:
    """Encoded sequences, and their labels in the form that models learn: BILUO, if they are spans.

    words: What stands at each position, if that is known: phrases are compared by it.
    groups: (n_sequences,), the document of each sequence.
    """

    data: Sequences
    columns: Columns
    annotation: Annotation
    groups: Groups
    words: Sequence[Sequence[str]] | None = None


# Many parameters: how to cross-fit, each with a default.
def audit_sequences(
    X: FeatureDicts,
    y: Labels,
    *,
    words: Sequence[Sequence[str]] | None = None,
    documents: Sequence[Any] | None = None,
    together: bool = True,
    folds: int = 5,
    members: int = 1,
    seed: int = 0,
    report: Report | None = None,
    **settings: Any,
) -> Audit:
    """Judge the labels of sequences by models that have not seen them.

    X, y: Feature dicts and labels, as estimators take them; None is a position that is not
        annotated. Labels of spans, in any scheme, are judged as spans, others one by one.
    words: What stands at each position; with it, the same phrases are compared.
    documents: The document of each sequence; by default each is its own.
    together: Whether sequences of a document are judged by models that have seen nothing of it.
    folds, members: The parts, and the models for each of them; see `Plan`.
    report: A function that is told how many rounds are done, and of how many.
    settings: Settings of `BoostedCRF`.
    """
    chosen = Settings(**settings)
    refuse_spill(chosen)
    X, y = checked(X, y, "X", "y")
    annotation, names = annotation_of(y)
    columns, offsets, feature_ids, numeric = fit_columns(
        X, min_count=chosen.min_count, max_bins=chosen.max_bins, missing=chosen.missing
    )
    ids = {label: i for i, label in enumerate(annotation.labels)}
    flat = [UNKNOWN_LABEL if label is None else ids[label] for own in names for label in own]
    data = Sequences(
        offsets, feature_ids, numeric, np.array(flat, np.int32), np.ones(len(flat), np.float32)
    )
    labelled = LabelledData(data, columns, annotation, groups_of(documents, len(y)), words)
    return audit_data(labelled, chosen, Plan(folds, members, seed=seed, together=together), report)


def audit_data(
    labelled: LabelledData, settings: Settings, plan: Plan, report: Report | None = None
) -> Audit:
    """The audit of encoded sequences.

    settings: Constraints that are not set become those of spans, where labels are spans.
    """
    annotation, data = labelled.annotation, labelled.data
    if annotation.has_spans and settings.order and settings.constraints == "none":
        settings = replace(settings, constraints="biluo")
    fit = CrossFit(data, annotation.labels, labelled.columns, labelled.groups, settings, plan)
    phrases = _phrases(labelled)
    judgements: list[FoldJudgement] = []
    order: list[int] = []
    with Workers(settings.threads) as workers:
        for held_out in fit.held_out(workers, report):
            judgements.append(Judge(held_out, annotation, phrases).judgement())
            order += held_out.sequences.tolist()
    findings = [one for own in judgements for one in own.findings]
    judged = [one for own in judgements for one in own.judged]
    chances = [one for own in judgements for one in own.label_probabilities]
    by_number = [chances[i] for i in np.argsort(order)]
    return Audit(
        sorted(findings, key=lambda one: (-one.score, one.sequence, one.start)),
        sorted(judged, key=lambda one: (one.sequence, one.start)),
        np.concatenate(by_number),
        data.offsets,
        annotation.has_spans,
    )


def refuse_spill(settings: Settings) -> None:
    if settings.spill is not None:
        raise ValueError("treecrf: spill is for training; leave it out, an audit is in memory")


def annotation_of(y: Labels, source: str = "y") -> tuple[Annotation, list[list[Label]]]:
    """The annotation, and the labels as models learn them: BILUO, where they are spans.

    source: Where labels come from, for the error about data without any.
    """
    has_spans = are_span_labels({label for own in y for label in own})
    if not has_spans:
        rows = [list(own) for own in y]
        spans = [_positions(own) for own in rows]
        labels = sorted({label for own in rows for label in own if label is not None})
        if not labels:
            raise ValueError(f"treecrf: nothing is annotated in {source}; pass labels to judge")
        return Annotation(labels, spans, False), rows
    rows = [_typed(as_biluo(own)) for own in y]
    spans = [biluo_spans(own) for own in rows]
    names = sorted({name for own in spans for _, _, name in own})
    labels = ["O", *(label for name in names for label in biluo_labels(name))]
    return Annotation(labels, spans, True), rows


def groups_of(documents: Sequence[Any] | None, n: int) -> Groups:
    """Numbers of documents, equal where documents are equal; by default n different ones."""
    if documents is None:
        return np.arange(n)
    if len(documents) != n:
        raise ValueError(
            f"treecrf: {len(documents)} documents for {n} sequences; name the document of each"
        )
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(one, len(numbers)) for one in documents], np.int64)


def _typed(labels: list[Label]) -> list[Label]:
    return [label + UNTYPED if label and label.endswith("-") else label for label in labels]


def _positions(labels: Sequence[Label]) -> list[TokenSpan]:
    return [(t, t + 1, label) for t, label in enumerate(labels) if label is not None]


def _phrases(labelled: LabelledData) -> Phrases | None:
    if labelled.words is None:
        return None
    known = labelled.data.labels != UNKNOWN_LABEL
    bounds = labelled.data.offsets
    annotated = [known[bounds[s] : bounds[s + 1]].tolist() for s in range(len(bounds) - 1)]
    return Phrases(labelled.words, labelled.annotation.spans, annotated, labelled.groups.tolist())
