"""`spacy project run future` (tables 5.3 to 5.5): methods, data and tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.reproduce.future import (
    ORDERS,
    PAPER_BITS,
    PAPER_STRESS,
    Result,
    bits,
    compare,
    found_patterns,
    methods,
    shown,
    without,
)
from scripts.reproduce.future import stress as stress_parts
from scripts.reproduce.report import load
from spacy_treecrf import FutureFeatureMEMM
from tests.corpora.places import folder_with
from tests.fresh_environment import ROOT
from tests.tiny import tiny_data


def test_methods_are_those_of_the_published_tables() -> None:
    made = methods(ORDERS, 2, ORDERS)
    assert list(made) == list(PAPER_STRESS)
    assert made["CRF-3"].get_params()["family"] == "joint"
    assert {made[name].get_params()["order"] for name in made} == {0, 1, 2, 3, 4}
    synthetic = without(methods(ORDERS, 6, (0,)), "MEMM-2", "MEMM-3", "MEMM-4")
    assert all(len(numbers) == len(synthetic) for numbers in PAPER_BITS.values())


def test_bits_have_the_published_sizes() -> None:
    parts = bits("or", 1)
    assert {part: len(X) for part, (X, _) in parts.items()} == {
        "train": 400,
        "dev": 200,
        "test": 100,
    }


def test_stress_is_one_class_or_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("nettalk")))
    for binary, classes in ((True, {"0", "1"}), (False, set("012<>"))):
        X, y = stress_parts(binary, 0)["train"]
        assert {label for labels in y for label in labels} == classes
        assert set(X[0][0]) == {"letter"}


def test_every_method_is_compared_and_shown() -> None:
    X, y = tiny_data(20)
    parts = {"train": (X, y), "dev": (X, y), "test": (X, y)}
    made = methods((1,), 2, (1,))
    for model in made.values():
        model.set_params(rounds=2)
    results = compare(made, lambda seed: parts, 2)
    assert all(len(r.accuracies) == len(r.seconds) == 2 for r in results.values())
    table = shown("title", results, {"SW": 84.2})
    assert [row[0] for row in table.rows] == list(made)
    assert [row[3] for row in table.rows] == ["84.2"] + ["-"] * (len(made) - 1)
    table = shown("title", {"SW": Result([50.0, 60.0], [1.0, 2.0])}, {})
    assert table.rows == [["SW", "55.0", "50.0", "-", "1.5"]]


def test_patterns_are_counted_as_found_only_where_they_are() -> None:
    parts = bits("or", 0)
    model = FutureFeatureMEMM(order=0, bag=6).fit(*parts["train"], *parts["dev"])
    assert found_patterns(model, "or") == (100.0, 100.0)
    untaught = FutureFeatureMEMM(order=0, bag=6, rounds=1).fit(*parts["train"], *parts["dev"])
    instances, bags = found_patterns(untaught, "or")
    assert instances == pytest.approx(89, abs=2)  # a pattern has at most 1 of 6 bits: 7 / 64
    assert bags < 60


@pytest.mark.slow
def test_the_quick_run_prints_both_tables(tmp_path: Path) -> None:
    folder = folder_with("nettalk")
    shutil.copy(ROOT / "project.yml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "scripts.reproduce", "--quick", "hao-5.4", "hao-5.5"],
        cwd=tmp_path,
        env=os.environ | {"TREECRF_CORPORA": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "table 5.4" in done.stdout
    assert "table 5.5" in done.stdout
    results = tmp_path / "metrics" / "results"
    for table in load(results / "hao-5.4.json").tables:
        accuracy = {row[0]: float(row[1]) for row in table.rows}
        assert accuracy["FF-MEMM-0"] >= 99.9
    binary, _, five = load(results / "hao-5.5.json").tables
    for table in (binary, five):
        accuracy = {row[0]: float(row[1]) for row in table.rows}
        assert accuracy["FF-MEMM-1"] >= accuracy["MEMM-1"] + 2.0
    page = (tmp_path / "metrics" / "results.md").read_text(encoding="utf-8")
    assert "| FF-MEMM-0 | 100.0 |" in page
