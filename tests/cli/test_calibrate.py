"""`calibrate`: honest probabilities of column models and pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.storage import container
from tests.cli.calls import call, good, refused
from tests.pipeline.tiny_pipes import corpus, pipe_of, trained_nlp


def test_calibrated_file_tags_the_same_with_other_probabilities(
    shared: Path, tmp_path: Path
) -> None:
    model, test, output = shared / "good.treecrf", shared / "test.conll", tmp_path / "new.treecrf"
    done = call("calibrate", model, test, "-o", output)
    assert done.exit_code == 0, done.output
    assert "temperature " in done.stderr
    assert "calibration error %" in done.stderr
    crf = ColumnModel.from_state(container.read(output)).crf
    assert crf.potentials.temperature != 1.0
    assert good("tag", output, test) == good("tag", model, test)
    assert good("tag", output, test, "--probabilities") != good(
        "tag", model, test, "--probabilities"
    )
    assert "exists; use --force" in refused("calibrate", model, test, "-o", output)
    good("calibrate", model, test, "-o", output, "--force")


def test_curve_is_learned_and_stored(shared: Path, tmp_path: Path) -> None:
    model, test, output = shared / "good.treecrf", shared / "test.conll", tmp_path / "new.treecrf"
    done = call("calibrate", model, test, "-o", output, "--curve")
    assert done.exit_code == 0, done.output
    assert "times exp(" in done.stderr
    crf = ColumnModel.from_state(container.read(output)).crf
    assert crf.potentials.curve is not None
    assert good("tag", output, test, "--probabilities") != good(
        "tag", model, test, "--probabilities"
    )
    good("calibrate", output, test, "-o", tmp_path / "again.treecrf")
    again = ColumnModel.from_state(container.read(tmp_path / "again.treecrf")).crf
    assert again.potentials.curve is None


def test_pipeline_is_calibrated(tmp_path: Path) -> None:
    nlp = trained_nlp()
    examples = corpus(nlp)
    docs = tmp_path / "dev.spacy"
    DocBin(docs=[own.reference for own in examples]).to_disk(docs)
    nlp.to_disk(tmp_path / "model")
    done = call("calibrate", tmp_path / "model", docs, "-o", tmp_path / "new")
    assert done.exit_code == 0, done.output
    loaded = pipe_of(spacy.load(tmp_path / "new"))
    assert loaded.shim.trained.potentials.temperature != 1.0
    assert pipe_of(nlp).calibrate(examples) == pytest.approx(
        loaded.shim.trained.potentials.temperature, rel=0.01
    )


def test_the_label_outside_is_lowered_where_it_is_asked_for(shared: Path, tmp_path: Path) -> None:
    nlp = trained_nlp("ents")
    examples = corpus(nlp)
    docs = tmp_path / "dev.spacy"
    DocBin(docs=[own.reference for own in examples]).to_disk(docs)
    nlp.to_disk(tmp_path / "model")
    done = call("calibrate", tmp_path / "model", docs, "-o", tmp_path / "new", "--outside")
    assert done.exit_code == 0, done.output
    assert "taken off the score of O " in done.stderr
    stored = pipe_of(spacy.load(tmp_path / "new")).shim.trained.potentials
    assert stored.outside != 0.0
    assert pipe_of(nlp).calibrate(examples, outside=True) == pytest.approx(
        stored.temperature, rel=0.02
    )
    assert pipe_of(nlp).shim.trained.potentials.outside == pytest.approx(stored.outside, abs=0.02)
    untyped = trained_nlp("tag")
    with pytest.raises(ValueError, match="no label 'O'"):
        pipe_of(untyped).calibrate(corpus(untyped), outside=True)


def test_a_model_that_is_not_there_is_refused(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.treecrf"
    message = refused(
        "calibrate", tmp_path / "nothing.treecrf", shared / "test.conll", "-o", output
    )
    assert "nothing.treecrf" in message
    assert not output.exists()
