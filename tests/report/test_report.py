"""Numbers of the report are those of the functions of evaluation, and stand on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spacy_treecrf.columnar.model import TrainingCurve
from spacy_treecrf.evaluation.figures import compare_judged, figures_of
from spacy_treecrf.evaluation.observing import Observed, observe
from spacy_treecrf.evaluation.spans import span_scores, total_score
from spacy_treecrf.labels.schemes import conll_spans
from spacy_treecrf.report.learning import curves_of_column_model, curves_of_pipe
from spacy_treecrf.report.report import KNOWN, UNKNOWN, Report, Resampling, report_of, rival_of
from spacy_treecrf.report.report_page import report_page
from spacy_treecrf.taggers.column_tagger import ColumnTagger
from tests.columnar.tiny_columns import tiny_file, tiny_rows, trained, write_columns
from tests.pages.test_markup import Reader

FEW = Resampling(resamples=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    tiny_file(folder, "test.conll", n=60, seed=9)
    return folder


@pytest.fixture(scope="module")
def weak(folder: Path) -> ColumnTagger:
    return ColumnTagger(trained(tiny_file(folder, n=3, seed=3), rounds=1), "weak", threads=1)


@pytest.fixture(scope="module")
def good(folder: Path) -> ColumnTagger:
    return ColumnTagger(trained(tiny_file(folder, n=20, seed=4)), "good", threads=1)


def observed_by(tagger: ColumnTagger, path: Path) -> Observed:
    return observe(tagger, tagger.read(str(path), gold=True)[1])


@pytest.fixture(scope="module")
def observed(weak: ColumnTagger, folder: Path) -> Observed:
    return observed_by(weak, folder / "test.conll")


@pytest.fixture(scope="module")
def report(weak: ColumnTagger, observed: Observed) -> Report:
    return report_of(("weak", "test"), weak.model, observed, resampling=FEW)


def test_numbers_are_those_of_evaluation(report: Report, observed: Observed) -> None:
    judged = observed.judged
    figures = figures_of(judged, resamples=30)
    assert report.figures.figures == figures.figures
    per_type = span_scores(judged.gold, judged.predicted)
    assert {own.name: own.score for own in report.groups.by_type} == per_type
    total = total_score(per_type)
    assert report.points[0].score == total
    for groups in (report.groups.by_words, report.groups.by_length, report.groups.by_sequence):
        assert groups is not None
        assert sum(own.score.gold for own in groups) == total.gold
        assert sum(own.score.predicted for own in groups) == total.predicted
        assert sum(own.score.right for own in groups) == total.right
    assert report.span_calibration is not None
    assert report.span_calibration.counts.sum() == total.predicted


def test_unknown_words_are_those_that_training_has_not_seen(
    report: Report, observed: Observed
) -> None:
    seen = {row[0].lower() for rows in tiny_rows(3, seed=3) for row in rows}
    unknown = known_only = 0
    for words, labels in zip(observed.words, observed.judged.gold, strict=True):
        for start, end, _ in conll_spans(labels):
            is_known = all(word.lower() in seen for word in words[start:end])
            known_only += is_known
            unknown += not is_known
    assert unknown
    assert known_only
    assert report.groups.by_words is not None
    known, others = report.groups.by_words
    assert (known.name, others.name) == (KNOWN, UNKNOWN)
    assert (known.score.gold, others.score.gold) == (known_only, unknown)


def test_the_most_confident_errors_come_first(report: Report) -> None:
    assert 0 < len(report.errors) <= 20
    for shown in report.errors:
        error = shown.error
        assert shown.gold[error.wrong] != shown.predicted[error.wrong]
    chances = [shown.error.probability for shown in report.errors]
    assert chances == sorted(chances, reverse=True)


def test_the_page_shows_the_numbers(report: Report) -> None:
    page = report_page(report, version="1.2.3")
    text = Reader(page).text
    f1 = report.figures.figures["span_f1"]
    assert f1.value is not None
    assert f"{100 * f1.value:.2f} %" in text
    assert f"{100 * (f1.low or 0):.2f} % to {100 * (f1.high or 0):.2f} %" in text
    for own in report.groups.by_type:
        assert re.search(rf"{own.name}{100 * own.score.precision:.2f} %", text)
    for section in ("scores", "parts-of-the-data", "probabilities", "confusion", "training"):
        assert f'<section id="{section}"' in page
    assert report.confusion is not None
    for n in report.confusion.kinds.values():
        assert str(n) in text
    assert "1.2.3" in text


def test_a_rival_is_compared_as_compare_does(
    report: Report, observed: Observed, good: ColumnTagger, folder: Path
) -> None:
    other = observed_by(good, folder / "test.conll")
    rival = rival_of("good", observed, other, FEW)
    assert rival.comparison == compare_judged(observed.judged, other.judged, resamples=30)
    text = Reader(report_page(report, rival)).text
    assert "A is weak, B is good." in text
    test = rival.comparison.mcnemar
    assert f"only A is right at {test.only_a}, only B at {test.only_b}" in text


def test_names_and_words_from_data_are_escaped(weak: ColumnTagger, tmp_path: Path) -> None:
    rows = [[["<script>", "N", "B-<i>"], ["&amp;", "V", "O"]]] * 3
    path = write_columns(tmp_path / "odd.conll", rows)
    found = observed_by(weak, path)
    page = report_page(report_of(("<b>", "<u>"), weak.model, found, resampling=FEW))
    names = {name for name, _ in Reader(page).elements}
    assert not names & {"i", "b", "u"}
    assert Reader(page).elements.count(("script", {})) == 3  # those of the page
    assert "<script>" in Reader(page).text


def test_labels_that_mark_no_spans(tmp_path: Path) -> None:
    rows = [[[word, tag] for word, tag, _ in own] for own in tiny_rows(20)]
    train = write_columns(tmp_path / "train.conll", rows)
    tagger = ColumnTagger(trained(train), "tags", threads=1)
    wrong = [[*own[:-1], [own[-1][0], "V"]] for own in rows]
    found = observed_by(tagger, write_columns(tmp_path / "wrong.conll", wrong))
    own = report_of(("tags", "test"), tagger.model, found, resampling=FEW)
    assert own.confusion is None
    assert own.span_calibration is None
    assert sum(group.score.gold for group in own.groups.by_sequence) == own.figures.annotated
    page = report_page(own)
    assert "F1 by label" in page
    assert own.errors
    best = own.errors[0]
    assert f"predicted <strong>{best.predicted[best.error.wrong]}" in page


def test_curves_of_pipes_begin_after_the_first_rounds() -> None:
    (curve,) = curves_of_pipe([(0, 1.75), (5, 0.25), (10, 0.125)])
    assert curve.lines == {"training": [(5.0, -0.25), (10.0, -0.125)]}
    (short,) = curves_of_pipe([(0, 1.75)])
    assert short.lines == {"training": [(0.0, -1.75)]}
    assert curves_of_pipe([]) == []


def test_curves_of_column_models_have_held_out_scores_where_there_were_any() -> None:
    training = TrainingCurve([-3.0, -2.0, -1.0], [-2.5, -1.5], [0.5, 0.75], [0.25, 0.5])
    likelihood, scores = curves_of_column_model(training, 2)
    assert likelihood.lines["training"] == [(1.0, -3.0), (2.0, -2.0), (3.0, -1.0)]
    assert likelihood.lines["held-out"] == [(2.0, -2.5), (3.0, -1.5)]
    assert scores.lines == {
        "accuracy": [(2.0, 0.5), (3.0, 0.75)],
        "span F1": [(2.0, 0.25), (3.0, 0.5)],
    }
    assert (likelihood.kept, scores.kept) == (2, 2)
