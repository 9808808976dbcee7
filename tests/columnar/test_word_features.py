"""Clusters, vectors and gazetteers of column files are those of the pipe, and part of the model."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.vectors import Vectors

from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.columnar.word_features import WordFeatures, make_word_features
from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader
from tests.cli.calls import QUICK, good, refused
from tests.columnar.tiny_columns import tiny_file, tiny_rows, write_columns

SENTENCES = [["Ann", "saw", "New", "York"], ["Rome"], []]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A pipeline with vectors of three words; in half precision they are exact."""
    nlp = spacy.blank("xx")
    data = np.array([[0.5, -1.0], [2.0, 0.25], [1.5, 1.5]], np.float32)
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=["Ann", "rome", "York"])
    nlp.to_disk(tmp_path / "vectors")
    return tmp_path / "vectors"


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    path = tmp_path / "cities.txt"
    path.write_text("new york\nRome\n", encoding="utf-8")
    return path


def added(features: WordFeatures, sentences: list[list[str]] = SENTENCES) -> list[Any]:
    blank: list[list[dict[str, Any]]] = [[{} for _ in words] for words in sentences]
    return list(features.add_to(blank, sentences, "1"))


def reloaded(features: WordFeatures) -> WordFeatures:
    return WordFeatures.from_state(
        StateReader(container.parse(container.dump(features.to_state())))
    )


def test_values_are_those_of_words_and_their_neighbours(pipeline: Path, cities: Path) -> None:
    made = make_word_features([f"vectors={pipeline}", f"gazetteer.city={cities}"])
    assert made is not None
    for features in (made, reloaded(made)):
        first, second, third = added(features)
        assert first[0] == {"1.vector0[0]": 0.5, "1.vector1[0]": -1.0}
        assert first[1] == {"1.gazetteer.city[1]": "B"}
        assert first[2] == {"1.gazetteer.city[0]": "B", "1.gazetteer.city[1]": "L"}
        assert first[3] == {
            "1.vector0[0]": 1.5,
            "1.vector1[0]": 1.5,
            "1.gazetteer.city[-1]": "B",
            "1.gazetteer.city[0]": "L",
        }
        # of its lower-case form
        assert second == [{"1.vector0[0]": 2.0, "1.vector1[0]": 0.25, "1.gazetteer.city[0]": "U"}]
        assert third == []


def test_files_of_more_sequences_than_a_batch_are_the_same(cities: Path) -> None:
    made = make_word_features([f"gazetteer.city={cities}"])
    assert made is not None
    many = [SENTENCES[i % 2] for i in range(600)]
    assert added(made, many) == [added(made)[i % 2] for i in range(600)]


@pytest.mark.skipif(find_spec("spacy_lookups_data") is None, reason="spacy-lookups-data")
def test_real_clusters_are_those_of_the_pipe() -> None:
    made = make_word_features(["clusters=en"])
    assert made is not None
    london, paris, walked = added(made, [["London"], ["Paris"], ["walked"]])
    assert london[0]["1.cluster4[0]"] == paris[0]["1.cluster4[0]"]
    assert len(london[0]["1.cluster6[0]"]) == 6
    assert london[0]["1.cluster[0]"] != walked[0]["1.cluster[0]"]
    assert added(reloaded(made), [["London"]]) == [london]


def test_models_keep_what_they_were_given(tmp_path: Path, pipeline: Path, cities: Path) -> None:
    """Names that training never saw are known by their vectors and lists alone."""
    rows = [
        [[f"w{i}{j}" if label != "B-LOC" else "rome", tag, label] for j, (_, tag, label) in rows]
        for i, rows in enumerate(map(list, map(enumerate, tiny_rows(12))))
    ]
    data, output = write_columns(tmp_path / "train.conll", rows), tmp_path / "m.treecrf"
    options = ["--features", f"vectors={pipeline}", "--features", f"gazetteer.city={cities}"]
    good("train", data, "-o", output, *QUICK, *options)
    model = ColumnModel.from_state(container.read(output))
    assert "1.gazetteer.city[0]" in model.crf.columns.column_names
    assert "1.vector1[0]" in model.crf.columns.numeric_names
    cities.unlink()
    new = write_columns(tmp_path / "new.conll", [[["ROME", "N"], ["x9", "V"]]])
    (line,) = good("tag", output, new, "--json").splitlines()
    assert json.loads(line)["labels"][0] == "B-LOC"
    good("evaluate", output, data, "--resamples", "0")
    longer = [*QUICK, "--rounds", "6"][2:]
    good("train", data, "-o", output, *longer, "--resume")
    again = ColumnModel.from_state(container.read(output))
    assert again.words is not None
    assert again.crf.rounds == 6


def test_models_without_such_features_are_stored_as_before(tmp_path: Path) -> None:
    good("train", tiny_file(tmp_path), "-o", tmp_path / "m.treecrf", *QUICK)
    assert set(container.read(tmp_path / "m.treecrf")) == {"kind", "template", "history", "crf"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters", "use, each once, clusters=LANGUAGE"),
        ("colours=red", "--features has 'colours=red'"),
        ("gazetteer.=x.txt", "gazetteer.NAME=FILE"),
        ("clusters=xx", "which is not there; pip install spacy-lookups-data"),
        ("vectors=nowhere", "no pipeline of spaCy is there"),
        ("gazetteer.city=nowhere.txt", "nowhere.txt"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, text: str, message: str) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    assert message in refused("train", data, "-o", output, *QUICK, "--features", text)
    assert not output.exists()


def test_columns_without_words_are_refused(tmp_path: Path, cities: Path) -> None:
    data = write_columns(tmp_path / "letters.conll", [[["a", "X"], ["b", "Y"]]])
    options = ["--features", f"gazetteer.city={cities}"]
    said = refused("train", data, "-o", tmp_path / "m.treecrf", *QUICK, *options)
    assert "no column of the training file holds words, which --features is about" in said


def test_tune_takes_features(tmp_path: Path, cities: Path) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    options = ["--set", "rounds=2", "--set", "min_count=1", "--threads", "1"]
    good("tune", data, "-o", output, *options, "--features", f"gazetteer.city={cities}")
    assert ColumnModel.from_state(container.read(output)).words is not None
