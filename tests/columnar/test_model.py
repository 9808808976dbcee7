"""Models for column files: one file with everything, training that can go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.columnar.files import read_column_file
from spacy_treecrf.columnar.model import ColumnModel, TrainingCurve, model_file
from spacy_treecrf.columnar.training import TrainingStopped, fit
from spacy_treecrf.storage import container
from tests.columnar.tiny_columns import SETTINGS, tiny_file, trained


def data_of(path: Path, model: ColumnModel) -> Any:
    file = read_column_file(path)
    sequences, labels = model.template.split(file, need_labels=True)
    return list(model.template.features(sequences, file.place)), labels


def test_saved_models_are_the_same_after_loading(tmp_path: Path) -> None:
    path = tiny_file(tmp_path)
    model = trained(path)
    model.save(tmp_path / "m.treecrf")
    loaded = ColumnModel.from_state(container.read(tmp_path / "m.treecrf"))
    assert loaded.template == model.template
    assert loaded.curve == replace(model.curve, seconds=[])
    assert len(loaded.curve.log_likelihood) == 4
    file = read_column_file(path)
    rows, _ = model.template.split(file, need_labels=True)
    for own, other in zip(
        model.encode(rows, file, 0).__dict__.values(),
        loaded.encode(rows, file, 0).__dict__.values(),
        strict=True,
    ):
        np.testing.assert_array_equal(own, other)


def test_edited_models_are_refused_by_field(tmp_path: Path) -> None:
    model = trained(tiny_file(tmp_path))
    model.save(tmp_path / "m.treecrf")
    state = container.read(tmp_path / "m.treecrf")
    for field, value, message in [
        ("kind", "crf", "field 'kind'"),
        ("template", {"kinds": ["word"]}, "field 'template.kinds'"),
        ("history", {}, "field 'history.log_likelihood'"),
        ("more", 1, "unknown fields: 'more'"),
    ]:
        with pytest.raises(ValueError, match=message):
            ColumnModel.from_state({**state, field: value})


def test_interrupted_training_goes_on_to_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_file(tmp_path)
    whole = trained(path)
    data = data_of(path, whole)
    add = TrainingCurve.add

    def stop(curve: TrainingCurve, *args: Any) -> None:
        add(curve, *args)
        if len(curve.log_likelihood) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainingCurve, "add", stop)
    with pytest.raises(TrainingStopped) as stopped:
        fit(whole.template, data, None, SETTINGS)
    monkeypatch.undo()
    part = stopped.value.model
    assert part.crf.potentials.rounds == 2
    assert len(part.curve.log_likelihood) == 2
    resumed = fit(whole.template, data, None, SETTINGS, part)
    assert resumed.curve.log_likelihood == whole.curve.log_likelihood
    assert resumed.curve.seconds == sorted(resumed.curve.seconds)
    assert container.dump(resumed.crf.to_state()) == container.dump(whole.crf.to_state())


def test_resumed_models_keep_their_settings(tmp_path: Path) -> None:
    path = tiny_file(tmp_path)
    model = trained(path)
    resumed = fit(
        model.template,
        data_of(path, model),
        None,
        {**SETTINGS, "leaves": 64, "rounds": 6},
        model,
    )
    assert resumed.crf.settings.leaves == SETTINGS["leaves"]
    assert resumed.crf.potentials.rounds == 6
    assert resumed.curve.log_likelihood[:4] == model.curve.log_likelihood


def test_curves_that_begin_late_end_with_the_others() -> None:
    curve = TrainingCurve([-3.0, -2.0, -1.0], [-2.5, -1.5], [0.5, 0.6], [1.0, 2.0, 3.0])
    assert curve.at(curve.log_likelihood, 1) == -3.0
    assert curve.at(curve.held_out_log_likelihood, 1) is None
    assert curve.at(curve.held_out_log_likelihood, 3) == -1.5
    assert curve.at(curve.log_likelihood, 4) is None


def test_folders_hold_a_model_of_fixed_name(tmp_path: Path) -> None:
    assert model_file("model/") == Path("model/model.treecrf")
    assert model_file(tmp_path) == tmp_path / "model.treecrf"
    assert model_file("m.treecrf") == Path("m.treecrf")


def test_the_estimator_does_not_take_the_file_for_one_of_its_own(tmp_path: Path) -> None:
    trained(tiny_file(tmp_path)).save(tmp_path / "m.treecrf")
    with pytest.raises(ValueError, match="field 'kind'"):
        BoostedCRF.load(tmp_path / "m.treecrf")
