"""Probabilities of spans as conlleval reads them, against all label sequences."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.estimators.base import encoded
from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import conll_spans
from spacy_treecrf.models import predictor as predictor_module
from spacy_treecrf.models import scored_blocks
from spacy_treecrf.models.spans.read_spans import expected_spans, read_span_probabilities
from tests.models.unsure_spans import fitted, inputs

SCHEMES = ["BIO", "IOB1", "IOE2", "BIOES", "BILUO"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"family": "separate", "constraints": "observed"},
    {"family": "joint", "order": 2},
    {"order": 0},
]


def enumerated(model: Any, x: list[dict[str, str]]) -> dict[TokenSpan, float]:
    """The probability of each span that some labelling is read as having."""
    found: dict[TokenSpan, float] = defaultdict(float)
    for labels, p in model.predict_nbest([x], n=len(model.classes_) ** len(x))[0]:
        for span in conll_spans(labels):
            found[span] += p
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_probabilities_are_sums_over_all_label_sequences(
    scheme: str, settings: dict[str, Any]
) -> None:
    model = fitted(scheme, **settings)
    X = inputs(12)
    (data,) = encoded(model.model_, X)
    firsts = data.offsets.tolist()
    with model._predictor() as predictor:
        scored = predictor.apply(data)
        numbers = expected_spans(scored, model.classes_)
        for s, x in enumerate(X):
            wanted = enumerated(model, x)
            assert numbers[firsts[s] : firsts[s + 1]].sum() == pytest.approx(
                sum(wanted.values()), abs=1e-4
            )
            for (start, end, name), p in wanted.items():
                span = (firsts[s] + start, firsts[s] + end, name)
                assert read_span_probabilities(scored, [span], model.classes_) == pytest.approx(
                    [p], abs=1e-5
                )


OF_MANY_ROWS = [(0, 1, "X"), (1, 2, "X"), (2, 4, "Y"), (4, 7, "X"), (7, 8, "Y"), (9, 14, "X")]
OF_ONE_ROW = [(t, t + 1, "XXYX"[t % 4]) for t in range(21)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("spans", [OF_MANY_ROWS, OF_ONE_ROW], ids=["many rows", "one row"])
def test_neighbours_are_told_together_what_each_is_told_alone(
    scheme: str, spans: list[TokenSpan]
) -> None:
    model = fitted(scheme)
    X = [[{"word": "a", "hint": "?"}] * 7] * 3
    (data,) = encoded(model.model_, X)
    with model._predictor() as predictor:
        scored = predictor.apply(data)
        together = read_span_probabilities(scored, spans, model.classes_)
        alone = [read_span_probabilities(scored, [span], model.classes_)[0] for span in spans]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    assert (together > 0.0).all()


def test_a_beam_prunes_nothing() -> None:
    model = fitted("BIO", family="separate", beam=2)
    (data,) = encoded(model.model_, inputs(12))
    spans = [(first, first + 1, "X") for first in data.offsets[:-1].tolist()]
    with model._predictor() as predictor:
        scored = predictor.apply(data)
        exact = scored.unpruned()
        assert np.abs(exact.marginals() - scored.marginals()).max() > 1e-3
        np.testing.assert_array_equal(
            read_span_probabilities(scored, spans, model.classes_),
            read_span_probabilities(exact, spans, model.classes_),
        )


def test_rows_are_scored_once_for_all_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("BILUO")
    (data,) = encoded(model.model_, inputs(40))
    spans = [(first, first + 1, "X") for first in data.offsets[:-1].tolist()]
    with model._predictor() as predictor:
        at_once = read_span_probabilities(predictor.apply(data), spans, model.classes_)
        monkeypatch.setattr(scored_blocks, "BLOCK_BYTES", 12 * model.model_.score_bytes)
        scored = predictor.apply(data)
        n_blocks = len(scored_blocks.blocks(data.offsets, model.model_.score_bytes))
        calls: list[int] = []
        original = predictor_module.scored_block

        def counted(*args: Any) -> Any:
            calls.append(1)
            return original(*args)

        monkeypatch.setattr(predictor_module, "scored_block", counted)
        in_parts = read_span_probabilities(scored, spans, model.classes_)
    np.testing.assert_array_equal(in_parts, at_once)
    assert n_blocks > 3
    assert len(calls) == n_blocks


def test_under_rules_labels_are_counted_that_begin_or_end_spans() -> None:
    for scheme in ("BIO", "IOE2"):
        model = fitted(scheme, constraints="observed").set_params(rules=["X once"])
        (data,) = encoded(model.model_, inputs(8))
        with model._predictor() as predictor:
            scored = predictor.apply(data)
            assert scored.ruled is not None
            letter = "B" if scheme == "BIO" else "E"
            counted = [label.startswith(letter) for label in model.classes_]
            np.testing.assert_allclose(
                expected_spans(scored, model.classes_), scored.marginals()[:, counted].sum(axis=1)
            )


def test_no_spans_have_no_probabilities() -> None:
    model = fitted("BIO")
    (data,) = encoded(model.model_, inputs(2))
    with model._predictor() as predictor:
        assert len(read_span_probabilities(predictor.apply(data), [], model.classes_)) == 0
