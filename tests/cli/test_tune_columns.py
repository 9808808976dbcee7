"""`tune` of column files: from a file to a model of good settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.storage import container
from tests.cli.calls import good, refused
from tests.columnar.tiny_columns import tiny_file, write_columns

FIXED = ["linear_rounds=1", "min_rows=1", "min_count=1", "rounds=3"]
QUICK = ["--threads", "1", *(part for text in FIXED for part in ("--set", text))]


def test_the_best_settings_become_a_model_of_the_whole_file(tmp_path: Path) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "best.treecrf"
    found = json.loads(
        good("tune", data, "-o", output, "--folds", "2", "--set", "leaves=1,8", "--json", *QUICK)
    )
    assert len(found["trials"]) == 2
    assert all(len(trial["folds"]) == 2 for trial in found["trials"])
    scores = [trial["score"] for trial in found["trials"]]
    assert scores[0] == max(scores)
    model = ColumnModel.from_state(container.read(output))
    assert model.crf.settings.leaves == found["best"]["leaves"]
    good("train", data, "-o", tmp_path / "same.treecrf", *QUICK, "--set", "leaves=8")
    if found["best"]["leaves"] == 8:
        assert output.read_bytes() == (tmp_path / "same.treecrf").read_bytes()
    assert "F1" in good("evaluate", output, data, "--resamples", "0")


def test_held_out_files_and_journals_are_used(tmp_path: Path) -> None:
    data, dev = tiny_file(tmp_path), tiny_file(tmp_path, "dev.conll", n=10, seed=5)
    arguments = ["tune", data, "-o", tmp_path / "m.treecrf", "--dev", dev, *QUICK]
    good(*arguments, "--set", "ridge=1.0")
    lines = (tmp_path / "m.treecrf.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert set(json.loads(lines[1])["scores"]) == {"accuracy", "f1"}
    good(*arguments, "--set", "ridge=1.0,3.0", "--force")
    assert len((tmp_path / "m.treecrf.jsonl").read_text().splitlines()) == 3
    tiny_file(tmp_path, "dev.conll", n=10, seed=6)
    assert "(different: dev)" in refused(*arguments, "--set", "ridge=1.0", "--force")


def test_labels_that_are_no_spans_are_scored_by_accuracy(tmp_path: Path) -> None:
    data = tiny_file(tmp_path)
    options = ["--label-column", "2", "--columns", "3=skip", "--set", "leaves=4"]
    good("tune", data, "-o", tmp_path / "m.treecrf", *QUICK, *options)
    result = json.loads((tmp_path / "m.treecrf.jsonl").read_text().splitlines()[1])
    assert set(result["scores"]) == {"accuracy"}
    assert result["score"] == result["scores"]["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "leafs=1"], "the model has no setting 'leafs'; did you mean leaves"),
        (["--set", "leaves=0"], "no combination of settings could be trained"),
        (["--set", "leaves=1..4"], "--random"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    output = tmp_path / "m.treecrf"
    assert message in refused("tune", tiny_file(tmp_path), "-o", output, *options)
    assert not output.exists()
    assert not (tmp_path / "m.treecrf.jsonl").exists()


def test_configs_need_training_data_and_files_more_than_one_sequence(tmp_path: Path) -> None:
    config = tmp_path / "ner.cfg"
    config.write_text("[nlp]\n")
    said = refused("tune", config, "-o", tmp_path / "best.cfg", "--set", "leaves=4")
    assert "its training data by --train" in said
    short = write_columns(tmp_path / "short.conll", [[["a", "X"]]])
    said = refused("tune", short, "-o", tmp_path / "m.treecrf", "--set", "leaves=4")
    assert "too few to hold out a part" in said
