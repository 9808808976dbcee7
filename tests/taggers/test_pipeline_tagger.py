"""A spaCy pipeline that labels docs and column files, judged by its figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_treecrf.evaluation.figures import figures_of
from spacy_treecrf.evaluation.judging import judge
from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger
from tests.columnar.tiny_columns import write_columns
from tests.pipeline.tiny_pipes import (
    CORPUS,
    corpus,
    labels_of,
    new_nlp,
    pipe_of,
    train,
    trained_nlp,
    words_of,
)


def test_pipelines_have_the_same_figures_on_docs_and_on_columns(tmp_path: Path) -> None:
    nlp = trained_nlp("ents", steps=1, model={"linear_rounds": 1})
    examples = corpus(nlp, "ents")
    DocBin(docs=[e.reference for e in examples]).to_disk(tmp_path / "data.spacy")
    to_bio = {"U": "B", "L": "I"}
    rows = [
        [
            [word, to_bio.get(label[0], label[0]) + label[1:]]
            for word, label in zip(words_of(s), labels_of(s, "ents"), strict=True)
        ]
        for s in CORPUS
    ]
    write_columns(tmp_path / "data.conll", rows)
    tagger = PipelineTagger(nlp, pipe_of(nlp), "nlp", threads=1)
    by_docs, by_columns = (
        judge(tagger, tagger.read(str(tmp_path / name), gold=True)[1])
        for name in ("data.spacy", "data.conll")
    )
    assert by_docs.gold == by_columns.gold == [labels_of(s, "ents") for s in CORPUS]
    assert by_docs.predicted == by_columns.predicted
    figures = figures_of(by_docs, resamples=0)
    scores = nlp.evaluate(examples)
    assert figures.figures["span_f1"].value == pytest.approx(scores["ents_f"])
    assert figures.figures["nll_per_token"].value == pytest.approx(scores["treecrf_nll"], rel=1e-4)


def test_sequences_of_column_files_stay_whole_whatever_punctuation_is_in_them(
    tmp_path: Path,
) -> None:
    nlp = trained_nlp("ents", steps=1, model={"linear_rounds": 1}, sequence="punctuation")
    rows = [["Ann", "B-PER"], [".", "O"], ["Bob", "B-PER"], ["left", "O"], [".", "O"]]
    write_columns(tmp_path / "data.conll", [rows, rows[:1]])
    tagger = PipelineTagger(nlp, pipe_of(nlp), "nlp", threads=1)
    (chunk,) = tagger.read(str(tmp_path / "data.conll"), gold=True)[1]
    assert [len(own) for own in chunk.rows] == [5, 1]
    assert chunk.data.n_sequences == 2


def test_tags_that_spell_spans_are_not_cut_at_the_ends_of_sentences(tmp_path: Path) -> None:
    sentences = ["in|B-PP|O New|B-NP|O York|I-NP|O", "Ann|B-NP|O slept|B-VP|O"]
    nlp = new_nlp("tag")
    examples = corpus(nlp, "tag", sentences=sentences)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 4)
    DocBin(docs=[e.reference for e in examples]).to_disk(tmp_path / "d.spacy")
    tagger = PipelineTagger(nlp, pipe_of(nlp), "nlp", threads=1)
    judged = judge(tagger, tagger.read(str(tmp_path / "d.spacy"), gold=True)[1])
    assert judged.predicted == judged.gold
    assert figures_of(judged, resamples=0).figures["span_f1"].value == 1.0


def test_spans_below_min_prob_are_not_predicted(tmp_path: Path) -> None:
    nlp = trained_nlp("ents", steps=1, model={"linear_rounds": 1}, min_prob=0.999999)
    tagger = PipelineTagger(nlp, pipe_of(nlp), "nlp", threads=1)
    DocBin(docs=[e.reference for e in corpus(nlp, "ents")]).to_disk(tmp_path / "d.spacy")
    judged = judge(tagger, tagger.read(str(tmp_path / "d.spacy"), gold=True)[1])
    assert {label for labels in judged.predicted for label in labels} == {"O"}
