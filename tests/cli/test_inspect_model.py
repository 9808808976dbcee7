"""`inspect`: what it shows, of models of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spacy_treecrf import SECOCCRF, BoostedMEMM, FutureFeatureMEMM, PerceptronTagger
from spacy_treecrf.estimators import SequenceEstimator
from tests.cli.calls import good, process, refused
from tests.tiny import new, tiny_data


def test_inspect_says_what_was_learned(shared: Path) -> None:
    shown = good("inspect", shared / "good.treecrf", "--top", "3")
    assert "4 rounds" in shown
    assert "columns of the file: 1 word, 2 value, 3 label" in shown
    assert "4 labels: B-LOC, B-PER, I-PER, O" in shown
    assert "strongest paths of trees" in shown
    assert "likely transition" in shown


def test_inspect_json_holds_lists_of_the_wanted_length(shared: Path) -> None:
    found = json.loads(good("inspect", shared / "good.treecrf", "--json", "--top", "2"))
    assert len(found["top_features"]) == 2
    assert len(found["paths"]) == 2
    assert found["bytes"] == (shared / "good.treecrf").stat().st_size
    assert found["labels"] == ["B-LOC", "B-PER", "I-PER", "O"]


def test_inspect_takes_pipelines_and_models_of_the_estimator(shared: Path, tmp_path: Path) -> None:
    found = json.loads(good("inspect", shared / "pipeline", "--json"))
    assert "U-PERSON" in found["labels"]
    assert found["forbidden_transitions"] > 0
    assert found["bytes"] > 0
    new(rounds=3, threads=1).fit(*tiny_data()).save(tmp_path / "own.treecrf")
    assert "3 rounds" in good("inspect", tmp_path / "own.treecrf")


@pytest.mark.parametrize(
    "model",
    [BoostedMEMM(order=2, rounds=3), SECOCCRF(), PerceptronTagger()],
    ids=lambda model: type(model).__name__,
)
def test_inspect_takes_models_of_every_kind(model: SequenceEstimator, tmp_path: Path) -> None:
    model.set_params(threads=1).fit(*tiny_data()).save(tmp_path / "own.treecrf")
    shown = good("inspect", tmp_path / "own.treecrf")
    assert f"{type(model.model_).__name__}, {model.model_.rounds} rounds" in shown
    found = json.loads(good("inspect", tmp_path / "own.treecrf", "--json"))
    assert found["labels"] == list(model.model_.labels)
    assert found["detectors"] == []


def test_inspect_says_in_words_what_detectors_look_for(tmp_path: Path) -> None:
    words = ["acb", "caa", "aba", "bcb", "cac", "ccb"] * 5
    X = [[{"letter": letter} for letter in word] for word in words]
    y = [["b to come" if "b" in word[t + 1 :] else "-" for t in range(3)] for word in words]
    settings = {"order": 0, "min_rows": 1, "min_count": 1, "threads": 1}
    model = FutureFeatureMEMM(**settings).fit(X, y, X, y)
    model.save(tmp_path / "own.treecrf")
    shown = good("inspect", tmp_path / "own.treecrf")
    assert f"detector 1: {model.describe_detectors()[0]}" in shown
    assert "anywhere after speaks for 'b to come'" in shown


def test_inspect_refuses_what_is_no_model(shared: Path) -> None:
    assert "does not hold a model" in refused("inspect", shared / "train.conll")
    assert "neither a model" in refused("inspect", "no_such_package")


def test_inspect_as_a_process(shared: Path) -> None:
    run = process(["inspect", "good.treecrf"], shared)
    assert run.returncode == 0, run.stderr
    assert "4 rounds" in run.stdout
