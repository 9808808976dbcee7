"""Figures of real models: those of column files and of pipelines agree with direct computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spacy_treecrf.columnar.files import read_column_file
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.evaluation.figures import calibration_of, compare_judged, figures_of
from spacy_treecrf.evaluation.judging import Judged, judge
from spacy_treecrf.evaluation.spans import span_scores, total_score
from spacy_treecrf.taggers.column_tagger import ColumnTagger
from tests.columnar.tiny_columns import tiny_file, tiny_rows, trained, write_columns


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> ColumnModel:
    folder = tmp_path_factory.mktemp("weak")
    return trained(tiny_file(folder, n=3, seed=3), rounds=1)


def judged_by(model: ColumnModel, path: Path) -> Judged:
    tagger = ColumnTagger(model, "model", threads=1)
    return judge(tagger, tagger.read(str(path), gold=True)[1])


def test_figures_are_those_of_the_plain_functions(weak: ColumnModel, tmp_path: Path) -> None:
    judged = judged_by(weak, tiny_file(tmp_path, n=40, seed=9))
    figures = figures_of(judged, resamples=20)
    gold, predicted = judged.gold, judged.predicted
    values = {name: own.value for name, own in figures.figures.items()}
    pairs = [list(zip(a, b, strict=True)) for a, b in zip(gold, predicted, strict=True)]
    tokens = [a == b for sequence in pairs for a, b in sequence if a is not None]
    assert values["token_accuracy"] == sum(tokens) / len(tokens)
    assert values["sequence_accuracy"] == sum(map(list.__eq__, gold, predicted)) / len(gold)
    total = total_score(span_scores(gold, predicted))
    assert values["span_f1"] == pytest.approx(total.f1)
    assert values["span_precision"] == pytest.approx(total.precision)
    assert values["span_recall"] == pytest.approx(total.recall)
    assert values["calibration_error"] == pytest.approx(calibration_of(judged).error)
    assert 0.0 < total.f1 < 1.0  # the model is weak enough to tell figures apart
    assert figures.sequences == 40
    for own in figures.figures.values():
        assert own.low is not None
        assert own.high is not None
        assert own.low <= own.high


def test_likelihood_and_probabilities_are_the_model_s(weak: ColumnModel, tmp_path: Path) -> None:
    """Against the estimator's best labellings, of which there are few enough to list them all."""
    path = write_columns(tmp_path / "one.conll", [tiny_rows(1, seed=5)[0][:3]])
    judged = judged_by(weak, path)
    estimator = BoostedCRF(threads=1)
    estimator.model_ = weak.crf
    file = read_column_file(path)
    rows, labels = weak.template.split(file, need_labels=True)
    X = list(weak.template.features(rows, file.place))
    assert labels is not None
    everything = {tuple(path): p for path, p in estimator.predict_nbest(X, n=10**4)[0]}
    assert sum(everything.values()) == pytest.approx(1.0)
    gold = tuple(str(label) for label in labels[0])
    assert judged.log_likelihood[0] == pytest.approx(np.log(everything[gold]), abs=1e-5)
    marginals = estimator.predict_marginals(X)[0]
    expected = [m[str(label)] for m, label in zip(marginals, judged.predicted[0], strict=True)]
    np.testing.assert_allclose(judged.probabilities[0], expected, rtol=1e-5)


def test_labels_unknown_to_the_model_are_wrong_and_not_in_the_likelihood(
    weak: ColumnModel, tmp_path: Path
) -> None:
    rows = tiny_rows(4, seed=2)
    rows[0][0][2] = "B-NEW"
    judged = judged_by(weak, write_columns(tmp_path / "new.conll", rows))
    figures = figures_of(judged, resamples=0)
    assert figures.unseen == {"B-NEW": 1}
    assert judged.known[0] == len(rows[0]) - 1
    assert np.isfinite(judged.log_likelihood).all()
    assert ("B-NEW" in {gold for gold, _, _ in figures.confusion.mistakes()}) is True


def test_annotation_that_constraints_forbid_is_counted(tmp_path: Path) -> None:
    model = trained(tiny_file(tmp_path), constraints="bio")
    rows = [[["Ann", "N", "O"], ["Lee", "N", "I-PER"]], *tiny_rows(3)]
    figures = figures_of(judged_by(model, write_columns(tmp_path / "t.conll", rows)), resamples=5)
    assert figures.impossible == 1
    nll = figures.figures["nll_per_token"].value
    assert nll is not None
    assert np.isfinite(nll)


def test_labels_that_are_no_spans_have_no_span_figures(tmp_path: Path) -> None:
    rows = [[[word, tag] for word, tag, _ in sentence] for sentence in tiny_rows()]
    path = write_columns(tmp_path / "tags.conll", rows)
    figures = figures_of(judged_by(trained(path), path), resamples=0)
    assert "span_f1" not in figures.figures
    assert figures.per_type == {}
    assert figures.figures["token_accuracy"].value == 1.0


def test_long_files_are_judged_in_order_over_chunks(weak: ColumnModel, tmp_path: Path) -> None:
    rows = tiny_rows(600, seed=4)
    judged = judged_by(weak, write_columns(tmp_path / "long.conll", rows))
    assert judged.gold == [[row[2] for row in sentence] for sentence in rows]
    few = judged_by(weak, write_columns(tmp_path / "few.conll", rows[500:510]))
    assert few.predicted == judged.predicted[500:510]
    np.testing.assert_allclose(few.log_likelihood, judged.log_likelihood[500:510], rtol=1e-5)


def test_schemes_are_compared_by_their_spans() -> None:
    bio = Judged([["B-X", "I-X", "O"]], [["B-X", "I-X", "B-X"]])
    biluo = Judged([["B-X", "L-X", "O"]], [["U-X", "U-X", "O"]])
    found = compare_judged(bio, biluo, resamples=5)
    assert found.span_f1 is not None
    assert found.span_f1.a == pytest.approx(2 / 3)
    assert found.span_f1.b == 0.0
    assert (found.mcnemar.only_a, found.mcnemar.only_b) == (1, 1)
    assert found.tokens == 3


def test_models_of_other_annotation_or_tokens_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different gold labels"):
        compare_judged(Judged([["A"]], [["A"]]), Judged([["B"]], [["B"]]))
    with pytest.raises(ValueError, match="different sequences or tokens"):
        compare_judged(Judged([["A"]], [["A"]]), Judged([["A", "A"]], [["A", "A"]]))
