"""Figures of whole pronunciations: those of the pronouncer's own score, with intervals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_treecrf.letters.rescoring import phonemes_of
from spacy_treecrf.letters.word_figures import word_figures
from tests.cli.calls import good
from tests.letters.test_pronouncer import WORDS, gold, pronouncing


def as_texts(nlp: Language, docs: list[Doc]) -> list[Example]:
    return [Example(nlp.make_doc(doc.text), doc) for doc in docs]


def test_figures_are_those_of_the_score_and_evaluate_shows_them(tmp_path: Path) -> None:
    nlp = pronouncing()
    docs = [gold(nlp, word) for word in WORDS]
    docs[0][1]._.phoneme = "AA0"  # the stress alone is wrong
    docs[1][0]._.phoneme = "B"
    docs[2][0]._.phoneme = None  # not annotated as a whole: does not count
    data = tmp_path / "test.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(data)
    found = word_figures(nlp, as_texts(nlp, docs), resamples=50)
    assert found is not None
    assert found.words == 5
    values = {name: figure.value for name, figure in found.figures.items()}
    assert values["words_right"] == 3 / 5
    assert values["words_right_without_stress"] == 4 / 5
    n_phonemes = sum(len("-".join(labels).split("-")) for labels in WORDS.values()) - 3
    assert values["phoneme_errors"] == pytest.approx(2 / n_phonemes)
    assert all(own.low is not None and own.low <= own.value for own in found.figures.values())
    nlp.to_disk(tmp_path / "model")
    shown = good("evaluate", tmp_path / "model", data, "--resamples", "0")
    assert "5 whole words" in shown
    assert "words right, without stress %" in shown
    as_json = json.loads(good("evaluate", tmp_path / "model", data, "--json"))
    assert as_json["whole_words"]["words"] == 5
    assert as_json["whole_words"]["figures"]["words_right"]["value"] == 3 / 5


def test_words_whose_letters_are_all_silent_count_as_in_the_score() -> None:
    nlp = pronouncing()
    docs = [gold(nlp, word) for word in ("box", "fob")]
    for letter in docs[0]:
        letter._.phoneme = "_"
    for own in (docs, docs[:1]):
        found = word_figures(nlp, as_texts(nlp, own), resamples=0)
        assert found is not None
        scores = nlp.evaluate(as_texts(nlp, own))
        assert found.words == len(own)
        assert found.figures["words_right"].value == scores["pronunciation_acc"]
        assert found.figures["phoneme_errors"].value == scores["pronunciation_phoneme_error"]


def test_words_of_docs_are_wrong_in_a_text_where_they_are_none(tmp_path: Path) -> None:
    nlp = pronouncing()
    nlp.config["corpora"]["dev"] = {"@readers": "spacy_treecrf.Corpus.v1", "path": None, "join": 2}
    nlp.to_disk(tmp_path / "model")
    data = tmp_path / "test.spacy"
    whole = Doc(nlp.vocab, words=list("bob-fob"), spaces=[False] * 7)
    said = [token._.phoneme for token in nlp(whole.copy())]
    for token, label in zip(whole, said, strict=True):
        token._.phoneme = label
    DocBin(docs=[gold(nlp, "box"), whole], store_user_data=True).to_disk(data)
    arguments = ["evaluate", tmp_path / "model", data, "--json", "--resamples", "0"]
    for options, right in (([], 1.0), (["--as-text"], 0.5)):
        found = json.loads(good(*arguments, *options))["whole_words"]
        assert found["words"] == 2
        assert found["figures"]["words_right"]["value"] == right
    n_silent = len(phonemes_of(said))
    assert found["figures"]["phoneme_errors"]["value"] == n_silent / (4 + n_silent)


def test_pipelines_without_a_pronouncer_have_no_such_figures() -> None:
    nlp = pronouncing()
    nlp.remove_pipe("treecrf_pronouncer")
    assert word_figures(nlp, as_texts(nlp, [gold(nlp, "box")])) is None
