"""Judgements of sequences: probabilities, findings, their kinds and order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from spacy_treecrf.audit import Audit, Finding, audit_sequences
from spacy_treecrf.audit.auditing import annotation_of, groups_of
from spacy_treecrf.audit.cross_fitting import HeldOut
from spacy_treecrf.audit.judging import Annotation, Judge
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.models.predictor import Predictor
from tests.audit.spoiled import QUICK, spoiled_rows
from tests.columnar.tiny_columns import tiny_rows
from tests.engine.enumeration import enumerate_paths


def audited(**options) -> tuple[Audit, dict[int, str]]:
    sentences, done = spoiled_rows()
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    y = [[row[2] for row in rows] for rows in sentences]
    words = [[row[0] for row in rows] for rows in sentences]
    documents = [s // 3 for s in range(len(y))]
    return audit_sequences(X, y, words=words, documents=documents, **QUICK, **options), done


def test_spoiled_spans_come_first_with_their_kind_and_the_right_suggestion():
    audit, done = audited()
    first = audit.findings[: len(done)]
    assert {one.sequence: one.kind for one in first} == done
    for one in first:
        assert isinstance(one, Finding)
        assert [name for _, _, name in one.suggested] == ["LOC"]
        assert one.probability < one.suggested_probability
        assert one.inconsistent
        assert one.elsewhere[0][0] == "LOC"
    scores = [one.score for one in audit.findings]
    assert scores == sorted(scores, reverse=True)


def test_every_annotated_span_and_position_is_judged():
    audit, _ = audited()
    sentences, _ = spoiled_rows()
    n_spans = sum(row[2].startswith("B-") for rows in sentences for row in rows)
    assert len(audit.judged) == n_spans == audit.summary()["judged"]
    assert len(audit.label_probabilities) == audit.offsets[-1] == sum(map(len, sentences))
    assert np.all((audit.label_probabilities >= 0.0) & (audit.label_probabilities <= 1.0))
    for one in audit.judged:
        rows = slice(audit.offsets[one.sequence] + one.start, audit.offsets[one.sequence] + one.end)
        assert one.probability <= audit.label_probabilities[rows].min() + 1e-6


def test_probabilities_are_those_of_all_label_sequences():
    """Regions and spans of one fold, against enumeration."""
    sentences = tiny_rows(20)
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    # one type, so that few label sequences are possible
    _, names = annotation_of([[row[2][:1] for row in rows] for rows in sentences])
    model = BoostedCRF(**QUICK, constraints="biluo").fit(X[4:], names[4:]).model_
    known = [[model.labels.index(label) for label in own] for own in names[:4]]
    flat = np.array([y for own in known for y in own], np.int32)
    offsets, feature_ids, numeric = model.columns.encode(X[:4])
    data = Sequences(offsets, feature_ids, numeric, flat, np.ones(len(flat), np.float32))
    scored = Predictor(model, Workers(1)).apply(data)
    spans = [biluo_spans([model.labels[y] for y in own]) for own in known]
    spans[1], spans[2] = [], spans[2][1:]  # so that something differs
    spans[3] = [(0, 2, "span")]
    annotation = Annotation(model.labels, spans, True)
    judgement = Judge(HeldOut(np.arange(4), scored), annotation, None).judgement()
    assert judgement.findings
    every = [
        enumerate_paths(scored.scores[a:b], scored.chain) for a, b in pairwise(offsets.tolist())
    ]

    def chance(sequence, start, end, wanted):
        def holds(path):
            found = biluo_spans([model.labels[y] for y in path])
            inside = [span for span in found if span[0] < end and start < span[1]]
            return inside == list(wanted)

        return every[sequence].probability_that(holds)

    for one in judgement.findings:
        place = one.sequence, one.start, one.end
        assert one.probability == pytest.approx(chance(*place, one.annotated), abs=1e-6)
        assert one.suggested_probability == pytest.approx(chance(*place, one.suggested), abs=1e-6)
    for one in judgement.judged:
        wanted = [(one.start, one.end, one.label)]
        assert one.probability == pytest.approx(
            chance(one.sequence, one.start, one.end, wanted), abs=1e-6
        )


def test_labels_that_are_no_spans_are_judged_one_by_one():
    sentences, _ = spoiled_rows()
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    y = [[row[1] for row in rows] for rows in sentences]
    y[11][0] = "V"
    words = [[row[0] for row in rows] for rows in sentences]
    audit = audit_sequences(X, y, words=words, **QUICK)
    assert not audit.spans
    first = audit.findings[0]
    assert (first.sequence, first.start, first.end, first.kind) == (11, 0, 1, "label")
    assert first.annotated == ((0, 1, "V"),)
    assert first.suggested == ((0, 1, "N"),)
    assert first.inconsistent
    assert len(audit.judged) == sum(map(len, y))


def test_positions_that_are_not_annotated_are_not_judged():
    sentences, _ = spoiled_rows()
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    y = [[row[2] for row in rows] for rows in sentences]
    y[5] = [None] * len(y[5])
    audit = audit_sequences(X, y, **QUICK)
    assert all(one.sequence != 5 for one in audit.findings)
    assert all(one.sequence != 5 for one in audit.judged)
    unknown = np.isnan(audit.label_probabilities)
    assert unknown[audit.offsets[5] : audit.offsets[6]].all()
    assert unknown.sum() == len(y[5])


def test_spans_without_types_are_spans():
    sentences, _ = spoiled_rows()
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    y = [[row[2][:1] for row in rows] for rows in sentences]
    audit = audit_sequences(X, y, **QUICK)
    assert audit.spans
    assert {one.label for one in audit.judged} == {"span"}


def test_data_without_any_label_and_documents_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="nothing is annotated"):
        audit_sequences([[{"a": "b"}]], [[None]])
    with pytest.raises(ValueError, match="2 documents for 3 sequences"):
        groups_of([0, 1], 3)
