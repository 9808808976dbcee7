"""F1 of spans from label ids, beside the same from label texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.span_f1 import span_f1, span_labels
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.evaluation.spans import span_scores, total_score

SCHEMES = {
    "BIO": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "IOBES": ["B-X", "I-X", "E-X", "S-X", "O", "S-Y", "B-Y", "E-Y"],
    "BILUO": ["B-X", "I-X", "L-X", "U-X", "U-Y", "O"],
    "untyped": ["I", "O", "B"],
}


def ids_of(sequences: list[list[str | None]], labels: list[str]) -> np.ndarray:
    flat = [label for sequence in sequences for label in sequence]
    return np.array([UNKNOWN_LABEL if y is None else labels.index(y) for y in flat], np.int32)


def offsets_of(sequences: list[list[str | None]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])


@pytest.mark.parametrize("labels", SCHEMES.values(), ids=SCHEMES)
@given(data=st.data())
def test_f1_of_ids_is_that_of_texts(labels: list[str], data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    known, any_label = st.sampled_from(labels), st.sampled_from([None, *labels])
    gold = [data.draw(st.lists(any_label, min_size=n, max_size=n)) for n in lengths]
    predicted = [data.draw(st.lists(known, min_size=n, max_size=n)) for n in lengths]
    spans = span_labels(labels)
    assert spans is not None
    found = span_f1(ids_of(gold, labels), ids_of(predicted, labels), offsets_of(gold), spans)
    assert found == pytest.approx(total_score(span_scores(gold, predicted)).f1)


@pytest.mark.parametrize("scheme", ["BIO", "IOBES", "BILUO"])
@given(data=st.data())
def test_spans_read_from_right_to_left_are_the_same(scheme: str, data: st.DataObject) -> None:
    """Of labels that follow their scheme, as annotation does."""
    labels = SCHEMES[scheme]
    spans = span_labels(labels)
    assert spans is not None
    single = {"BIO": ["B-X"], "IOBES": ["S-X"], "BILUO": ["U-X"]}[scheme]
    three = [
        labels[labels.index("B-X")],
        "I-X",
        {"IOBES": "E-X", "BILUO": "L-X"}.get(scheme, "I-X"),
    ]
    pieces = st.lists(st.sampled_from([["O"], single, three]), min_size=3, max_size=3)
    gold, predicted = ([y for part in data.draw(pieces) for y in part] for _ in range(2))
    n = min(len(gold), len(predicted))
    gold_ids, predicted_ids = ids_of([gold[:n]], labels), ids_of([predicted[:n]], labels)
    offsets = np.array([0, n])
    found = span_f1(gold_ids[::-1], predicted_ids[::-1], offsets, spans.turned_round())
    assert found == pytest.approx(span_f1(gold_ids, predicted_ids, offsets, spans))


@pytest.mark.parametrize("labels", [["O"], ["NN", "VB"], ["B", "O", "NN"], ["O", "B-X", "NN-Y"]])
def test_other_labels_spell_no_spans(labels: list[str]) -> None:
    assert span_labels(labels) is None
