"""`spacy project run future`: its methods, its data and its tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

from scripts.future import (
    ORDERS,
    PAPER_BITS,
    PAPER_STRESS,
    Result,
    bits,
    compare,
    methods,
    show,
    without,
)
from scripts.future import stress as stress_parts
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
    lines = show(results, {"SW": 84.2}).splitlines()
    assert re.fullmatch(r"SW +\d+\.\d +\d+\.\d +84\.2 +\d+\.\d", lines[1])
    assert [line.split()[0] for line in lines[1:]] == list(made)
    assert show({"SW": Result([50.0, 60.0], [1.0, 2.0])}, {}).splitlines()[1].split() == [
        "SW", "55.0", "50.0", "-", "1.5",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_quick_run_prints_both_tables(tmp_path: Path) -> None:
    folder = folder_with("nettalk")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.future", "--quick", "--output", tmp_path / "out.json"],
        cwd=ROOT,
        env=os.environ | {"TREECRF_CORPORA": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Table 5.4, XOR" in done.stdout
    assert "Table 5.5, NETtalk" in done.stdout
    found = srsly.read_json(tmp_path / "out.json")
    for problem in PAPER_BITS:
        assert found[problem]["FF-MEMM-0"]["accuracies"][0] >= 99.9
    for classes in ("stress2", "stress5"):
        memm, future = (found[classes][n]["accuracies"][0] for n in ("MEMM-1", "FF-MEMM-1"))
        assert future >= memm + 2.0
