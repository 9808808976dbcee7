"""The reader that keeps tokens and sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_treecrf.pipeline.readers import segmented_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    nlp = spacy.blank("en")
    words = ["We", "saw", "New-York", ".", "It", "rains", "."]
    starts = [True, False, False, False, True, False, False]
    docs = [Doc(nlp.vocab, words=words, sent_starts=starts) for _ in range(3)]
    docs[0].set_ents([Span(docs[0], 2, 3, "CITY")])
    docs.append(Doc(nlp.vocab, words=["no", "sentences"]))
    path = tmp_path / "train.spacy"
    DocBin(docs=docs).to_disk(path)
    return path


def test_predicted_docs_have_the_tokens_and_sentences_but_no_annotation(corpus: Path) -> None:
    examples = list(segmented_corpus(corpus)(spacy.blank("en")))
    first = examples[0]
    assert [token.text for token in first.predicted] == [token.text for token in first.reference]
    assert first.predicted.text == first.reference.text
    assert [sent.start for sent in first.predicted.sents] == [0, 4]
    assert [ent.label_ for ent in first.reference.ents] == ["CITY"]
    assert not first.predicted.ents
    assert not examples[3].predicted.has_annotation("SENT_START")


def test_limit_and_folders(corpus: Path) -> None:
    nlp = spacy.blank("en")
    assert len(list(segmented_corpus(corpus, limit=2)(nlp))) == 2
    assert len(list(segmented_corpus(str(corpus.parent))(nlp))) == 4


def test_every_epoch_reads_again(corpus: Path) -> None:
    read = segmented_corpus(corpus)
    nlp = spacy.blank("en")
    assert len(list(read(nlp))) == len(list(read(nlp))) == 4


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing\.spacy does not exist"):
        segmented_corpus(tmp_path / "nothing.spacy")
    with pytest.raises(ValueError, match="no path"):
        segmented_corpus(None)
