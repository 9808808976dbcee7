"""`tune`: from a config to a better one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spacy import util

from spacy_treecrf.tuning import config_training
from tests.cli.calls import call, good, process, refused
from tests.tuning.tiny_config import LEAVES, LINEAR, write_config, write_docs


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    train = write_docs(tmp_path / "train.spacy", repeats=3)
    dev = write_docs(tmp_path / "dev.spacy")
    config = write_config(tmp_path)
    return ["tune", config, "--train", train, "--dev", dev, "-o", tmp_path / "best.cfg"]


def test_grid_writes_the_best_settings_as_a_config(
    tmp_path: Path, arguments: list[str | Path]
) -> None:
    shown = good(*arguments, "--set", f"{LINEAR}=0,2", "--set", f"{LEAVES}=1")
    assert "saved to" in shown
    best = util.load_config(tmp_path / "best.cfg", interpolate=False)
    model = best["components"]["treecrf"]["model"]
    assert (model["linear_rounds"], model["leaves"]) == (2, 1)
    assert best["paths"]["train"] is None  # of the user's config, not of the search
    assert best["training"]["logger"]["@loggers"] == "spacy.ConsoleLogger.v1"
    assert best["corpora"]["train"]["path"] == "${paths.train}"


def test_random_search_by_folds_as_json(arguments: list[str | Path]) -> None:
    del arguments[4:6]  # --dev
    options = ["--folds", "2", "--random", "2", "--set", f"{LEAVES}=2..9", "--json"]
    found = json.loads(good(*arguments, *options))
    assert len(found["trials"]) == 2
    assert all(len(trial["folds"]) == 2 for trial in found["trials"])
    assert found["best"] == found["trials"][0]["settings"]


def test_interrupted_searches_go_on(
    tmp_path: Path, arguments: list[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments += ["--set", f"{LINEAR}=0,1,2"]
    run_training = config_training.run_training
    trained: list[Any] = []

    def stop(config: Any, settings: Any, fold: int) -> Any:
        if len(trained) == 1:
            raise KeyboardInterrupt
        trained.append(settings)
        return run_training(config, settings, fold)

    monkeypatch.setattr(config_training, "run_training", stop)
    result = call(*arguments)
    assert result.exit_code == 130
    assert "run it again to go on" in result.stderr
    assert not (tmp_path / "best.cfg").exists()

    def count(config: Any, settings: Any, fold: int) -> Any:
        trained.append(settings)
        return run_training(config, settings, fold)

    monkeypatch.setattr(config_training, "run_training", count)
    good(*arguments)
    assert trained == [{LINEAR: 0}, {LINEAR: 1}, {LINEAR: 2}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "components.treecrf.model.leafs=1"], "did you mean"),
        (["--set", f"{LEAVES}=1..4"], "--random"),
        (["--set", f"{LEAVES}=1", "--folds", "3"], "no --dev"),
        (["--set", f"{LEAVES}=1", "--hold-out", "2"], "--hold-out is 2"),
        (["--set", f"{LEAVES}=0"], "no combination of settings could be trained"),
    ],
)
def test_bad_input_is_refused(
    tmp_path: Path, arguments: list[str | Path], options: list[str], message: str
) -> None:
    assert message in refused(*arguments, *options)
    assert not (tmp_path / "best.cfg").exists()


def test_existing_outputs_and_missing_files_are_refused(
    tmp_path: Path, arguments: list[str | Path]
) -> None:
    options = ["--set", f"{LEAVES}=1"]
    (tmp_path / "best.cfg").write_text("precious")
    assert "exists" in refused(*arguments, *options)
    assert (tmp_path / "best.cfg").read_text() == "precious"
    (tmp_path / "best.cfg").unlink()
    arguments[1] = tmp_path / "none.cfg"
    assert "none.cfg" in refused(*arguments, *options)
    (tmp_path / "none.cfg").write_text("no config")
    assert "is not a config of spaCy" in refused(*arguments, *options)


def test_as_a_process(tmp_path: Path, arguments: list[str | Path]) -> None:
    run = process([*arguments, "--set", f"{LINEAR}=1,2"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert (tmp_path / "best.cfg").is_file()


def test_a_failed_search_does_not_block_the_next(
    tmp_path: Path, arguments: list[str | Path]
) -> None:
    refused(*arguments, "--set", f"{LEAVES}=0")
    assert not (tmp_path / "best.cfg.jsonl").exists()
    config = Path(arguments[1])
    config.write_text(config.read_text().replace("max_steps = 1", "max_steps = 2"))
    good(*arguments, "--set", f"{LINEAR}=1")
