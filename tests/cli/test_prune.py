"""`prune`: small files for prediction, of column models, estimators and pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy

from spacy_treecrf import BoostedCRF
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.storage import container
from tests.cli.calls import call, good, refused
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp
from tests.tiny import new, tiny_data


def test_pruned_file_tags_the_same_and_is_smaller(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "small.treecrf"
    done = call("prune", shared / "good.treecrf", "-o", output)
    assert done.exit_code == 0, done.output
    assert " MB -> " in done.stderr
    assert output.stat().st_size < (shared / "good.treecrf").stat().st_size / 2
    test = shared / "test.conll"
    for command in (["tag", "--probabilities"], ["tag"]):
        assert good(command[0], output, test, *command[1:]) == good(
            command[0], shared / "good.treecrf", test, *command[1:]
        )
    assert ColumnModel.from_state(container.read(output)).curve.log_likelihood == []
    assert "exists; use --force" in refused("prune", shared / "good.treecrf", "-o", output)
    good("prune", shared / "good.treecrf", "-o", output, "--force")
    message = refused("prune", output, "-o", output, "--force")
    assert "small.treecrf" in message


def test_dev_data_choose_the_threshold(shared: Path, tmp_path: Path) -> None:
    output, test = tmp_path / "small.treecrf", shared / "test.conll"
    exact = tmp_path / "exact.treecrf"
    good("prune", shared / "good.treecrf", "-o", exact)
    done = call("prune", shared / "good.treecrf", "-o", output, "--dev", test)
    assert done.exit_code == 0, done.output
    assert "span F1 %" in done.stderr
    assert "as it is" in done.stderr
    assert "dropped weights below" in done.stderr
    assert output.stat().st_size <= exact.stat().st_size
    scores = [good("evaluate", m, test, "--resamples", "0") for m in (exact, output)]
    f1 = [next(line for line in s.splitlines() if "span F1" in line) for s in scores]
    assert float(f1[1].split()[-1]) >= float(f1[0].split()[-1])


def test_pruned_model_cannot_go_on(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "small.treecrf"
    good("prune", shared / "good.treecrf", "-o", output)
    before = output.read_bytes()
    going_on = ["train", shared / "train.conll", "-o", output, "--resume", "--rounds", "9"]
    assert "is compact and cannot learn more" in refused(*going_on)
    assert output.read_bytes() == before


def test_model_of_an_estimator_is_pruned(tmp_path: Path) -> None:
    X, y = tiny_data(30)
    model = new(threads=1).fit(X, y)
    model.save(tmp_path / "own.treecrf")
    good("prune", tmp_path / "own.treecrf", "-o", tmp_path / "small.treecrf")
    loaded = BoostedCRF.load(tmp_path / "small.treecrf")
    assert loaded.predict_marginals(X) == model.predict_marginals(X)
    message = refused(
        "prune", tmp_path / "own.treecrf", "-o", tmp_path / "x", "--dev", tmp_path / "dev.conll"
    )
    assert "saved by an estimator" in message


def test_pruned_pipeline_predicts_the_same(shared: Path, tmp_path: Path) -> None:
    output = tmp_path / "small"
    good("prune", shared / "pipeline", "-o", output)
    whole, small = spacy.load(shared / "pipeline"), spacy.load(output)
    text = "Ada met Bob in Rome."
    assert whole(text).to_json() == small(text).to_json()
    one, other = (pipe_of(nlp).marginals(nlp.make_doc(text)) for nlp in (whole, small))
    assert one.tobytes() == other.tobytes()
    sizes = [
        (folder / "treecrf" / "model").stat().st_size for folder in (shared / "pipeline", output)
    ]
    assert sizes[1] < sizes[0] / 2
    again = small.from_bytes(small.to_bytes())
    assert again(text).to_json() == whole(text).to_json()
    assert "exists; name another folder" in refused("prune", shared / "pipeline", "-o", output)
    with pytest.raises(ValueError, match="is compact and cannot learn more"):
        pipe_of(small).add_label("NEW")


def test_pipeline_is_pruned_by_dev_data(shared: Path, tmp_path: Path) -> None:
    done = call(
        "prune", shared / "pipeline", "-o", tmp_path / "small", "--dev", shared / "test.conll"
    )
    assert done.exit_code == 0, done.output
    assert "span F1 %" in done.stderr
    assert spacy.load(tmp_path / "small")("Ada met Bob in Rome.").text


def test_what_cannot_be_pruned_is_refused(shared: Path, tmp_path: Path) -> None:
    memm = {"@architectures": "spacy_treecrf.MEMM.v1"}
    trained_nlp("ents", model=memm).to_disk(tmp_path / "memm")
    message = refused("prune", tmp_path / "memm", "-o", tmp_path / "out")
    assert "holds a MEMM; only boosted CRFs" in message
    assert "there is no model" in refused("prune", tmp_path / "none/a", "-o", tmp_path / "out")
    dev = ["--dev", tmp_path / "none.conll"]
    assert "none.conll" in refused("prune", shared / "good.treecrf", "-o", tmp_path / "o", *dev)
    assert not (tmp_path / "out").exists()
