"""scripts/reproduce/missing.py: damage, counting and the test of significance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scripts.reproduce import missing
from scripts.reproduce.logistic import fit_logistic
from scripts.reproduce.missing import METHODS, Condition, Problem, effects, tables, windows
from spacy_treecrf.corpora import LabelledSequence

VERSIONS = 2


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Words whose label at each letter is that letter, but "z" after an "a"."""
    rng = np.random.default_rng(0)
    words = [[str(c) for c in rng.choice(list("abc"), 8)] for _ in range(60)]
    before = [[None, *word[:-1]] for word in words]
    labels = [
        ["z" if b == "a" else w for b, w in zip(*pair, strict=True)]
        for pair in zip(before, words, strict=True)
    ]
    sequences = [
        LabelledSequence(w, {"tag": y}, key="".join(w)) for w, y in zip(words, labels, strict=True)
    ]
    published = {20: ("-0.1*", "-0.2*", "0.3")}
    tiny = Problem("tiny words", "tiny", "tag", range(-1, 1), 8, (2, 4), {}, published)
    monkeypatch.setattr(missing, "PROBLEMS", {"tiny": tiny})
    monkeypatch.setattr(
        missing, "sequences_of", lambda corpus: {"train": sequences[:40], "test": sequences[40:]}
    )
    return tiny


def test_a_missing_letter_is_missing_in_every_window_that_shows_it() -> None:
    assert windows(["a", None, "c"], range(-1, 3)) == [
        {"-1": "<edge>", "0": "a", "1": None, "2": "c"},
        {"-1": "a", "0": None, "1": "c", "2": "<edge>"},
        {"-1": None, "0": "c", "1": "<edge>", "2": "<edge>"},
    ]


def test_damage_is_at_the_rate_and_differs_between_versions_and_parts(problem: Problem) -> None:
    def gone(part: str, rate: int, version: int) -> list[bool]:
        X, _ = missing.damaged_part("tiny", part, rate, version)
        return [item["0"] is None for items in X for item in items]

    assert np.mean(gone("train", 40, 0)) == pytest.approx(0.4, abs=0.07)
    assert not any(gone("train", 0, 0))
    assert gone("train", 40, 0) == gone("train", 40, 0) != gone("train", 40, 1)
    n = len(gone("test", 40, 0))
    assert gone("train", 40, 0)[:n] != gone("test", 40, 0)


def test_logistic_regression_is_the_log_odds_ratio_of_a_table_of_four() -> None:
    design = np.array([[1.0, 0.0], [1.0, 1.0]])
    fit = fit_logistic(design, np.array([30.0, 45.0]), np.array([50.0, 60.0]))
    assert fit.coefficients == pytest.approx([np.log(30 / 20), np.log((45 / 15) / (30 / 20))])
    error = np.sqrt(1 / 30 + 1 / 20 + 1 / 45 + 1 / 15)
    assert fit.errors == pytest.approx([np.sqrt(1 / 30 + 1 / 20), error])
    assert fit.p_value(1) == pytest.approx(0.0949, abs=1e-4)  # z = 1.67


def test_logistic_regression_refuses_what_has_no_maximum() -> None:
    with pytest.raises(ValueError, match=r"treecrf: .* only successes"):
        fit_logistic(np.ones((1, 1)), np.array([5.0]), np.array([5.0]))


def test_effects_compare_with_instance_weighting_within_training_parts(problem: Problem) -> None:
    rates = {"instance_weighting": 0.8, "surrogate": 0.8, "imputation": 0.6, "indicator": 0.81}
    right = {
        Condition("tiny", 20, method): [[int(160 * rate)] * VERSIONS] * VERSIONS
        for method, rate in rates.items()
    }
    found = effects("tiny", 20, right)
    assert found["surrogate"].change == pytest.approx(0.0, abs=1e-9)
    odds = np.log(0.6 / 0.4) - np.log(0.8 / 0.2)
    assert found["imputation"].change == pytest.approx(odds)
    assert str(found["imputation"]) == f"{odds:.3f}*"
    assert found["indicator"].p > 0.5
    first, second = tables("tiny", [20], right, dict.fromkeys(right, 80.0))
    assert first.rows == [["20 %", *["80.00"] * 4]]
    assert second.rows[0][1:5] == ["0.000", "-0.1*", f"{odds:.3f}*", "-0.2*"]


def test_every_treatment_is_trained_counted_and_drawn(problem: Problem, tmp_path: Path) -> None:
    conditions = [Condition("tiny", 20, method) for method in METHODS]
    right = missing.measure(conditions, VERSIONS, processes=1)
    assert all(np.shape(counts) == (VERSIONS, VERSIONS) for counts in right.values())
    assert all(100 < count <= 160 for counts in right.values() for row in counts for count in row)
    # the same again
    choice = missing.choose(conditions[0])
    assert choice.leaves in problem.leaves
    training = missing.Training(conditions[0], 1, choice, VERSIONS)
    assert missing.count_right(training) == right[conditions[0]][1]
    (comparison,) = missing.comparisons([20], right)
    assert 0.0 <= comparison.ours <= 1.0
    missing.draw(dict.fromkeys(right, 80.0), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
