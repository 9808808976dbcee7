"""The closer look: errors, and exact probabilities of spans and errors."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import judge
from spacy_treecrf.evaluation.observing import Observed, error_ranges, observe
from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import conll_spans
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.taggers.column_tagger import ColumnTagger
from tests.columnar.tiny_columns import tiny_file, tiny_rows, trained, write_columns

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> ColumnTagger:
    folder = tmp_path_factory.mktemp("weak")
    model: ColumnModel = trained(tiny_file(folder, n=3, seed=3), rounds=1)
    return ColumnTagger(model, "weak", threads=1)


def observed_by(tagger: ColumnTagger, path: Path, most_errors: int = 20) -> Observed:
    return observe(tagger, tagger.read(str(path), gold=True)[1], most_errors)


def test_judged_as_evaluate_judges(weak: ColumnTagger, tmp_path: Path) -> None:
    path = tiny_file(tmp_path, n=300, seed=9)  # more than one chunk
    observed = observed_by(weak, path)
    judged = judge(weak, weak.read(str(path), gold=True)[1])
    assert observed.judged.gold == judged.gold
    assert observed.judged.predicted == judged.predicted
    assert observed.judged.log_likelihood == judged.log_likelihood
    assert observed.words == [[row[0] for row in rows] for rows in tiny_rows(300, seed=9)]
    assert observed.has_spans
    assert len(observed.span_probabilities) == 300


def test_probabilities_are_those_of_all_labellings(weak: ColumnTagger, tmp_path: Path) -> None:
    """P(a span), and P(labels of an error), against sums over all labellings that have them."""
    path = write_columns(tmp_path / "few.conll", [rows[:4] for rows in tiny_rows(6, seed=5)])
    observed = observed_by(weak, path)
    (chunk,) = weak.read(str(path), gold=True)[1]
    names = weak.model.labels
    assert observed.errors
    n_spans = 0
    with Workers(1) as workers:
        for s, predicted in enumerate(observed.judged.predicted):
            scored = Predictor(weak.model, workers).apply(chunk.data.part(s, s + 1))
            of_spans: dict[TokenSpan, float] = defaultdict(float)
            errors = [error for error in observed.errors if error.sequence == s]
            of_errors = np.zeros(len(errors))
            for ids in product(range(len(names)), repeat=len(predicted)):
                p = float(np.exp(scored.log_probability_of(np.array(ids, np.int32))[0]))
                labels = [names[y] for y in ids]
                for span in conll_spans(labels):
                    of_spans[span] += p
                for i, error in enumerate(errors):
                    if labels[error.start : error.end] == predicted[error.start : error.end]:
                        of_errors[i] += p
            wanted = [of_spans[span] for span in conll_spans(predicted)]
            assert observed.span_probabilities[s] == pytest.approx(wanted, abs=1e-6)
            assert [error.probability for error in errors] == pytest.approx(of_errors, abs=1e-6)
            n_spans += len(wanted)
    assert n_spans


def test_errors_are_sorted_and_only_the_first_keep_their_rows(
    weak: ColumnTagger, tmp_path: Path
) -> None:
    path = tiny_file(tmp_path, n=300, seed=9)
    errors = observed_by(weak, path, most_errors=3).errors
    assert len(errors) > 3
    chances = [error.probability for error in errors]
    assert chances == sorted(chances, reverse=True)
    assert [error.rows is not None for error in errors] == [True] * 3 + [False] * (len(errors) - 3)
    for error in errors[:3]:
        assert error.rows is not None
        assert error.start <= error.wrong < error.end <= error.rows.n_rows


@given(
    st.lists(
        st.tuples(st.sampled_from([*LABELS, None]), st.sampled_from(LABELS)), min_size=1, max_size=9
    ),
    st.booleans(),
)
def test_errors_cover_all_wrong_tokens_and_cut_no_span(
    pairs: list[tuple[str | None, str]], spans: bool
) -> None:
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    found = error_ranges(gold, predicted, spans)
    covered = [i for start, end, _ in found for i in range(start, end)]
    assert len(covered) == len(set(covered))
    wrong = {i for i, (a, b) in enumerate(pairs) if a is not None and a != b}
    assert wrong <= set(covered)
    for start, end, first in found:
        assert first == min(wrong & set(range(start, end)))
        if spans and None not in gold:
            for a, b, _ in (*conll_spans(gold), *conll_spans(predicted)):
                assert b <= start or a >= end or (start <= a and b <= end)
    if not spans:
        assert set(covered) == wrong
