"""Explanations of what taggers read: those of the model, with texts and alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.observing import observe
from spacy_treecrf.labels.schemes import conll_spans
from spacy_treecrf.report.reasons import reason_of
from spacy_treecrf.report.report import Resampling, report_of
from spacy_treecrf.taggers.column_tagger import ColumnTagger
from spacy_treecrf.taggers.explaining import SURE, explain_chunks
from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger
from tests.columnar.tiny_columns import tiny_file, tiny_rows, trained
from tests.pipeline.tiny_pipes import CORPUS, example, new_doc, pipe_of, trained_nlp


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> ColumnTagger:
    folder = tmp_path_factory.mktemp("weak")
    return ColumnTagger(trained(tiny_file(folder, n=3, seed=3), rounds=4), "weak", threads=1)


@pytest.fixture(scope="module")
def pipeline() -> PipelineTagger:
    nlp = trained_nlp("ents")
    return PipelineTagger(nlp, pipe_of(nlp), "pipeline", threads=1)


def test_sequences_of_column_files_are_explained(weak: ColumnTagger, tmp_path: Path) -> None:
    path = tiny_file(tmp_path, n=12, seed=9)
    (chunk,) = weak.read(str(path))[1]
    found = list(explain_chunks(weak, [chunk], every_token=True))
    assert [list(one.texts) for one in found] == [
        [row[0] for row in rows] for rows in tiny_rows(12, seed=9)
    ]
    with Workers(1) as workers:
        scored = weak.apply(chunk, workers)
        labels = weak.label(chunk, scored)
        nodes = scored.marginals()
    names, at = weak.model.labels, 0
    for one in found:
        assert list(one.labels) == labels[at : at + len(one.texts)]
        assert [(s.start, s.end, s.label) for s in one.spans] == conll_spans(one.labels)  # type: ignore[arg-type]
        assert one.alternatives[0].labels == one.labels
        assert [token.position for token in one.tokens] == list(range(len(one.texts)))
        for token in one.tokens:
            assert token.text == one.texts[token.position]
            for label, p in token.probabilities.items():
                expected = nodes[at + token.position, names.index(str(label))]
                assert p == pytest.approx(expected, abs=1e-6)
            parts = [c.value for c in token.contributions]
            total = token.base + sum(parts) + token.left.value + token.right.value
            assert token.score == pytest.approx(total, abs=1e-6)
        at += len(one.texts)


def test_of_many_tokens_those_of_spans_and_uncertain_ones_are_explained(
    weak: ColumnTagger, tmp_path: Path
) -> None:
    path = tiny_file(tmp_path, n=12, seed=9)
    n_explained = n_tokens = 0
    for one in explain_chunks(weak, weak.read(str(path))[1]):
        explained = {token.position for token in one.tokens}
        inside = {i for span in one.spans for i in range(span.start, span.end)}
        unsure = {i for i, p in enumerate(one.probabilities) if p < SURE}
        assert explained == inside | unsure
        n_explained += len(explained)
        n_tokens += len(one.texts)
    assert 0 < n_explained < n_tokens


def test_texts_are_cut_by_the_pipeline_and_keep_their_spaces(pipeline: PipelineTagger) -> None:
    text = "Ann  saw New York."
    (one,) = explain_chunks(pipeline, pipeline.read_texts([text]), every_token=True)
    assert "".join(t + s for t, s in zip(one.texts, one.whitespace, strict=True)) == text
    doc = pipeline.nlp(text)
    assert [(s.start, s.end, s.label) for s in one.spans] == [
        (ent.start, ent.end, ent.label_) for ent in doc.ents
    ]
    assert [s.probability for s in one.spans] == pytest.approx(
        [ent._.treecrf_prob for ent in doc.ents], abs=1e-6
    )


def test_sentences_of_docs_are_sequences_of_their_own(
    pipeline: PipelineTagger, tmp_path: Path
) -> None:
    doc = new_doc(pipeline.nlp, *CORPUS[:3])
    DocBin(docs=[doc]).to_disk(tmp_path / "docs.spacy")
    pipe = pipeline.pipe
    (chunk,) = pipeline._doc_chunks([(doc, None)])
    found = list(explain_chunks(pipeline, [chunk]))
    assert [len(one.texts) for one in found] == [len(sent) for sent in doc.sents]
    assert [w for one in found for w in one.texts] == [token.text for token in doc]
    assert [label for one in found for label in one.labels] == pipe.predict([doc])[0].labels


def test_errors_are_explained_against_the_gold_label(weak: ColumnTagger, tmp_path: Path) -> None:
    path = tiny_file(tmp_path, n=40, seed=9)
    observed = observe(weak, weak.read(str(path), gold=True)[1], 3)
    report = report_of(
        ("weak", "test"),
        weak.model,
        observed,
        explain=lambda shown: reason_of(weak, shown),
        most_errors=5,
        resampling=Resampling(resamples=0),
    )
    first, *_, last = report.errors
    assert last.explanation is None  # its rows were not kept
    assert first.explanation is not None
    wrong = first.error.wrong
    assert first.explanation["text"] == first.words[wrong]
    assert first.explanation["label"] == first.predicted[wrong]
    assert first.explanation["against"] == first.gold[wrong]
    chances = {one["label"]: one["probability"] for one in first.explanation["probabilities"]}
    assert chances[first.predicted[wrong]] >= first.error.probability - 1e-6


def test_a_pipeline_explains_its_errors(pipeline: PipelineTagger, tmp_path: Path) -> None:
    wrong = example(pipeline.nlp, "ents", "Ann|N|U-PLACE saw|V|O Rome|N|U-PLACE")
    DocBin(docs=[wrong.reference]).to_disk(tmp_path / "wrong.spacy")
    path = str(tmp_path / "wrong.spacy")
    observed = observe(pipeline, pipeline.read(path, gold=True)[1])
    report = report_of(
        ("pipeline", "wrong"),
        pipeline.model,
        observed,
        explain=lambda shown: reason_of(pipeline, shown),
        resampling=Resampling(resamples=0),
    )
    (error,) = report.errors
    assert error.explanation is not None
    assert (error.explanation["label"], error.explanation["against"]) == ("U-PERSON", "U-PLACE")
