"""`cross-calibrate`: honest probabilities by the training data alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_treecrf.cli.calibrate import serve_f1
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.corpora.readers import corpus as reader_of
from spacy_treecrf.storage import container
from tests.cli.calls import call, good, refused
from tests.pipeline.test_cross_calibrating import RARE, learned
from tests.pipeline.tiny_pipes import corpus, example, new_doc, pipe_of, trained_nlp


def test_pipeline_sets_the_spans_that_serve_f1_best_when_it_is_loaded(tmp_path: Path) -> None:
    nlp = learned(RARE, steps=2)
    examples = corpus(nlp, sentences=RARE)
    DocBin(docs=[own.reference for own in examples]).to_disk(tmp_path / "train.spacy")
    nlp.to_disk(tmp_path / "model")
    found = pipe_of(nlp).cross_calibrate(examples, folds=3, new_names=True)
    arguments = [tmp_path / "model", tmp_path / "train.spacy", "-o", tmp_path / "new"]
    done = call("cross-calibrate", *arguments, "--folds", "3", "--new-names", "--for-f1")
    assert done.exit_code == 0, done.output
    assert f"temperature {found.temperature:.3f}" in done.stderr
    assert f"taken off the score of O {found.outside:.3f}" in done.stderr
    assert found.expected_f1 is not None
    assert f"expected F1 {100 * found.expected_f1:.1f} %" in done.stderr
    loaded = spacy.load(tmp_path / "new")
    assert pipe_of(loaded).expected_f1 == pytest.approx(found.expected_f1, abs=1e-3)
    assert pipe_of(loaded).shim.trained.temperature == found.temperature
    pipe_of(nlp).expected_f1 = pipe_of(loaded).expected_f1
    for sentence in RARE[:10]:
        here, there = (own(new_doc(own, sentence)) for own in (nlp, loaded))
        assert [str(ent) for ent in here.ents] == [str(ent) for ent in there.ents]
    again = refused("cross-calibrate", tmp_path / "new", *arguments[1:3], tmp_path / "newer")
    assert "calibrated already" in again
    assert not (tmp_path / "newer").exists()


def test_training_data_are_read_as_the_config_reads_them(tmp_path: Path) -> None:
    nlp = learned(RARE)
    examples = [example(nlp, "ents", *RARE[i : i + 2]) for i in range(0, len(RARE), 2)]
    docs = tmp_path / "train.spacy"
    DocBin(docs=[own.reference for own in examples]).to_disk(docs)
    reader = {"@readers": "spacy_treecrf.Corpus.v1", "path": "elsewhere"}
    views = {"inputs": ["SENT_START"], "views": ["sentences", "text"]}
    nlp.config["corpora"] = {"train": {**reader, **views}, "dev": reader}
    nlp.to_disk(tmp_path / "model")
    good("cross-calibrate", tmp_path / "model", docs, "-o", tmp_path / "new", "--folds", "2")
    stored = pipe_of(spacy.load(tmp_path / "new")).shim.trained
    both = list(reader_of(docs, inputs=["SENT_START"], views=["sentences", "text"])(nlp))
    assert len(both) == 2 * len(examples)
    found = pipe_of(nlp).cross_calibrate(both, folds=2)
    assert stored.temperature == pytest.approx(found.temperature)


def test_column_models_have_a_temperature_and_a_lower_score_of_o(
    shared: Path, tmp_path: Path
) -> None:
    model, output = tmp_path / "model.treecrf", tmp_path / "new.treecrf"
    train = tmp_path / "train.conll"
    rows = "\n\n".join(
        "\n".join(" ".join(word.split("|")[::2]) for word in own.split()) for own in RARE
    )
    train.write_text(rows.replace("U-", "B-") + "\n", encoding="utf8")
    good("train", train, "-o", model, "--rounds", "15", "--columns", "1=word")
    done = call("cross-calibrate", model, train, "-o", output, "--new-names", "--folds", "3")
    assert done.exit_code == 0, done.output
    potentials = ColumnModel.from_state(container.read(output)).crf.potentials
    assert potentials.temperature != 1.0
    assert f"temperature {potentials.temperature:.3f}" in done.stderr
    assert f"taken off the score of O {potentials.outside:.3f}" in done.stderr
    assert "exists; use --force" in refused("cross-calibrate", model, train, "-o", output)
    again = refused("cross-calibrate", output, train, "-o", tmp_path / "again.treecrf")
    assert "calibrated already" in again
    assert "pipelines" in refused("cross-calibrate", model, train, "-o", output, "--for-f1")


def test_labels_that_the_model_lacks_are_refused_with_their_place(tmp_path: Path) -> None:
    model, soft = tmp_path / "model.treecrf", tmp_path / "soft.conll"
    soft.write_text("a B-X:0.8|O:0.2\nb O:1\n\n" * 4, encoding="utf8")
    good("train", soft, "-o", model, "--soft", "--rounds", "2", "--columns", "1=word")
    message = refused("cross-calibrate", model, soft, "-o", tmp_path / "new.treecrf")
    assert "soft.conll:1: the model does not have the label 'B-X:0.8|O:0.2'" in message
    assert not (tmp_path / "new.treecrf").exists()


def test_new_names_of_a_model_without_words_are_refused(tmp_path: Path) -> None:
    model, train = tmp_path / "model.treecrf", tmp_path / "train.conll"
    train.write_text("a B-X\nb O\n\n" * 3, encoding="utf8")
    good("train", train, "-o", model, "--rounds", "2", "--columns", "1=value")
    options = ["-o", tmp_path / "new.treecrf", "--folds", "2", "--new-names"]
    message = refused("cross-calibrate", model, train, *options)
    assert "holds words, which --new-names is about" in message


def test_new_names_of_a_model_whose_labels_are_no_spans_are_refused(tmp_path: Path) -> None:
    model, train = tmp_path / "model.treecrf", tmp_path / "train.conll"
    train.write_text("a NN\nb VB\n\n" * 3, encoding="utf8")
    good("train", train, "-o", model, "--rounds", "2", "--columns", "1=word")
    options = ["-o", tmp_path / "new.treecrf", "--folds", "2", "--new-names"]
    message = refused("cross-calibrate", model, train, *options)
    assert "are no spans, which new names are about; leave --new-names out" in message


def test_calibrate_sets_the_expected_f1_of_held_out_docs(tmp_path: Path) -> None:
    nlp = learned(RARE, steps=2)
    examples = corpus(nlp, sentences=RARE[:20])
    DocBin(docs=[own.reference for own in examples]).to_disk(tmp_path / "dev.spacy")
    nlp.to_disk(tmp_path / "model")
    done = call(
        "calibrate", tmp_path / "model", tmp_path / "dev.spacy", "-o", tmp_path / "new", "--for-f1"
    )
    assert done.exit_code == 0, done.output
    pipe_of(nlp).calibrate(examples)
    expected = pipe_of(nlp).f1_expected_of(own.reference for own in examples)
    loaded = pipe_of(spacy.load(tmp_path / "new"))
    assert loaded.expected_f1 == pytest.approx(expected, abs=0.01)


def test_pipes_without_spans_have_no_f1_to_serve(tmp_path: Path) -> None:
    nlp = trained_nlp("tag")
    docs = tmp_path / "dev.spacy"
    DocBin(docs=[own.reference for own in corpus(nlp, "tag")]).to_disk(docs)
    nlp.to_disk(tmp_path / "model")
    for command in ("calibrate", "cross-calibrate"):
        message = refused(command, tmp_path / "model", docs, "-o", tmp_path / "new", "--for-f1")
        assert "no spans" in message
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"order": 0},
        {"family": "joint", "order": 2},
        {"family": "separate", "beam": 2},
        {"predictor": "marginal"},
        {"rules": ["PERSON once"]},
        {"constraints": "none"},
    ],
    ids=str,
)
def test_pipes_that_keep_the_spans_of_their_labels_are_refused_an_f1_to_serve(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    nlp = trained_nlp(steps=1, rounds_per_step=1, model=settings)
    docs = [own.reference for own in corpus(nlp)]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    nlp.to_disk(tmp_path / "model")
    at_first = [pipe_of(nlp).predict([doc])[0].spans for doc in docs]
    pipe_of(nlp).expected_f1 = 0.05
    assert [pipe_of(nlp).predict([doc])[0].spans for doc in docs] == at_first
    for command in ("calibrate", "cross-calibrate"):
        arguments = [tmp_path / "model", tmp_path / "dev.spacy", "-o", tmp_path / "new"]
        assert "keeps the spans of its labels" in refused(command, *arguments, "--for-f1")
    assert not (tmp_path / "new").exists()


def test_a_pipe_that_expects_no_span_keeps_its_setting(capsys: pytest.CaptureFixture[str]) -> None:
    nlp = trained_nlp(steps=1, rounds_per_step=1, expected_f1=0.9)
    serve_f1(nlp, pipe_of(nlp), 0.0004)
    assert pipe_of(nlp).expected_f1 == nlp.get_pipe_config("treecrf")["expected_f1"] == 0.9
    assert "stays as it was" in capsys.readouterr().err
    serve_f1(nlp, pipe_of(nlp), 0.25)
    assert pipe_of(nlp).expected_f1 == nlp.get_pipe_config("treecrf")["expected_f1"] == 0.25
