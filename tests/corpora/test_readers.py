"""Readers for configs: examples whose docs to predict hold inputs, never labels."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Token
from spacy.training import Corpus as SpacyCorpus
from spacy.util import registry

from spacy_treecrf.corpora import CORPORA, LabelledSequence, write_spacy
from spacy_treecrf.corpora.docs import register_extension
from spacy_treecrf.corpora.readers import corpus, synthetic
from spacy_treecrf.labels.doc_keys import DOC_WEIGHT, LATTICE
from spacy_treecrf.storage import container

BITS = LabelledSequence(["?", "?"], {"letter": ["a", "b"]}, {"pixels": [[0, 1], [1, 0]]})


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    path = tmp_path / "chunks.spacy"
    labels = {"tag": ["N", "V"], "chunk": ["B-NP", "B-VP"]}
    write_spacy(
        path, [LabelledSequence([f"a{i}", "b"], labels) for i in range(5)], CORPORA["conll2000"]
    )
    return path


def test_docs_to_predict_have_the_inputs_and_no_labels(chunks: Path) -> None:
    nlp = spacy.blank("en")
    plain = next(iter(corpus(chunks)(nlp)))
    assert [token.text for token in plain.predicted] == ["a0", "b"]
    assert not plain.predicted.has_annotation("TAG")
    tagged = next(iter(corpus(chunks, ["TAG", "SENT_START"])(nlp)))
    assert [token.tag_ for token in tagged.predicted] == ["N", "V"]
    assert tagged.predicted.has_annotation("SENT_START")
    assert not tagged.predicted.spans
    assert [span.label_ for span in tagged.reference.spans["chunks"]] == ["NP", "VP"]


def test_docs_are_shown_as_sentences_and_as_text(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["Go", ".", "Mary", "left"], sent_starts=[1, -1, 1, -1])
    doc.ents = [doc.char_span(5, 9, label="PER")]
    path = tmp_path / "two.spacy"
    DocBin(docs=[doc]).to_disk(path)
    read = corpus(path, ["SENT_START"], views=["sentences", "text"])
    sentences, text = read(nlp)
    assert [len(sentence) for sentence in sentences.predicted.sents] == [2, 2]
    assert not text.predicted.has_annotation("SENT_START")
    for example in (sentences, text):
        assert not example.predicted.ents
        assert [ent.text for ent in example.reference.ents] == ["Mary"]
    DocBin(docs=[doc, nlp.make_doc("no boundaries")]).to_disk(path)
    assert len(list(corpus(path, ["SENT_START"], views=["sentences", "text"])(nlp))) == 3
    alone, _ = corpus(path, ["SENT_START"], views=["text"])(nlp)
    assert not alone.predicted.has_annotation("SENT_START")
    for views in ([], ["text", "text"], ["texts"]):
        with pytest.raises(ValueError, match=r"^treecrf: views of .*'sentences' and 'text'"):
            corpus(path, views=views)
    with pytest.raises(ValueError, match=r"^treecrf: join of .* is 2, and views names 'text'"):
        corpus(path, ["SENT_START"], join=2, views=["text"])
    with pytest.raises(ValueError, match=r"^treecrf: views .* add \"SENT_START\" to inputs"):
        corpus(path, views=["sentences", "text"])


@pytest.mark.parametrize("lengths", [[0], [0, 2], [2, 0], [2, 0, 2]])
@pytest.mark.parametrize("join", [1, 2])
def test_docs_may_be_empty(tmp_path: Path, lengths: list[int], join: int) -> None:
    nlp = spacy.blank("en")
    DocBin(docs=[Doc(nlp.vocab, words=["a"] * n) for n in lengths]).to_disk(tmp_path / "a.spacy")
    found = list(corpus(tmp_path / "a.spacy", ["SENT_START"], join=join)(nlp))
    assert sum(len(example.predicted) for example in found) == sum(lengths)
    if join == 1:
        assert len(found) == len(lengths)


def test_extensions_are_inputs_by_name(tmp_path: Path) -> None:
    path = tmp_path / "ocr.spacy"
    write_spacy(path, [BITS], CORPORA["ocr"])
    nlp = spacy.blank("xx")
    Token.remove_extension("pixels")  # as in another process
    (example,) = corpus(path, ["_.pixels"])(nlp)
    assert [tuple(token._.pixels) for token in example.predicted] == [(0, 1), (1, 0)]
    assert [token._.letter for token in example.predicted] == [None, None]
    assert [token._.letter for token in example.reference] == ["a", "b"]
    with pytest.raises(ValueError, match=r"^treecrf: no token of .* has _\.pixel,"):
        list(corpus(path, ["_.pixel"])(nlp))


def test_equal_texts_of_user_data_are_one_object(tmp_path: Path) -> None:
    register_extension("sound")
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["x", "y"]) for _ in range(3)]
    for doc in docs:
        for token in doc:
            token._.sound = "K-S"
        doc.user_data["note"] = ["kept", 1]
    path = tmp_path / "sounds.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    found = [example.reference.user_data for example in corpus(path)(nlp)]
    assert [dict(data) for data in found] == [
        {**doc.user_data, "note": ("kept", 1)} for doc in docs
    ]
    tokens = [(key, value) for data in found for key, value in data.items() if key != "note"]
    assert len(tokens) == 6
    for parts in zip(*((key[0], key[1], value) for key, value in tokens), strict=True):
        assert len(set(map(id, parts))) == 1


def test_docs_are_those_of_spacys_reader_and_read_once(tmp_path: Path) -> None:
    path = tmp_path / "letters.spacy"
    sequences = [
        LabelledSequence(list(word), {"hyphen": ["no"] * len(word)}) for word in ("ab", "c")
    ]
    write_spacy(path, sequences, CORPORA["moby"])
    nlp = spacy.blank("xx")
    read = corpus(path)
    ours = list(read(nlp))
    for mine, theirs in zip(ours, SpacyCorpus(path)(nlp), strict=True):
        assert mine.reference.user_data == theirs.reference.user_data
        assert mine.reference.to_bytes() == theirs.reference.to_bytes()
    path.unlink()
    assert [example.reference for example in read(nlp)] == [example.reference for example in ours]
    assert Token.has_extension("hyphen")


def test_joined_docs_are_sentences_with_the_same_tokens_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "words.spacy"
    words = ["alpha", "be", "gamma", "d", "eps"]
    sequences = [
        LabelledSequence(list(word), {"hyphen": [f"{i}{letter}" for letter in word]})
        for i, word in enumerate(words)
    ]
    write_spacy(path, sequences, CORPORA["moby"])
    nlp = spacy.blank("xx")
    examples = list(corpus(path, join=2)(nlp))
    assert [len(example.reference) for example in examples] == [7, 6, 3]
    for example in examples:
        for doc in (example.predicted, example.reference):
            assert doc.has_annotation("SENT_START")
    found = [sent for example in examples for sent in example.predicted.sents]
    assert ["".join(token.text for token in sent) for sent in found] == words
    gold = [token._.hyphen for example in examples for token in example.reference]
    assert gold == [label for sequence in sequences for label in sequence.labels["hyphen"]]
    assert not any(token._.hyphen for example in examples for token in example.predicted)
    assert sum(len(example.reference) for example in corpus(path, join=4, limit=3)(nlp)) == 12
    with pytest.raises(ValueError, match=r"^treecrf: join of .* is 0; use 1 or more"):
        corpus(path, join=0)


def test_joined_docs_train_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "words.spacy"
    words = ["ab", "abba", "baab", "b", "aabab", "bba"] * 4
    labels = [["x" if a + b == "ab" else "y" for a, b in pairwise(f"-{word}")] for word in words]
    sequences = [
        LabelledSequence(list(word), {"hyphen": own})
        for word, own in zip(words, labels, strict=True)
    ]
    write_spacy(path, sequences, CORPORA["moby"])
    states = []
    for join, sequence in ((1, "doc"), (5, "auto")):
        nlp = spacy.blank("xx")
        settings = {
            "task": "ext:hyphen",
            "sequence": sequence,
            "rounds_per_step": 6,
            "features": {"@misc": "spacy_treecrf.CharacterFeatures.v1"},
        }
        pipe = nlp.add_pipe("treecrf", config=settings)
        examples = list(corpus(path, join=join)(nlp))
        nlp.initialize(lambda examples=examples: examples)
        nlp.update(examples)
        states.append(container.dump(pipe.shim.trained.to_state()))
    assert states[0] == states[1]


def test_parsed_docs_are_not_joined(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["a", "b"], heads=[0, 0], deps=["ROOT", "dep"])
    DocBin(docs=[doc, doc]).to_disk(tmp_path / "parsed.spacy")
    with pytest.raises(ValueError, match=r"^treecrf: docs of .* are parsed"):
        list(corpus(tmp_path / "parsed.spacy", join=2)(nlp))


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (LATTICE, {"labels": ["x"]}, "a teacher's lattice"),
        (DOC_WEIGHT, 0.2, r"doc\._\.treecrf_weight"),
    ],
)
def test_docs_with_what_joining_would_lose_are_not_joined(
    tmp_path: Path, key: Any, value: Any, named: str
) -> None:
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["a", "b"]) for _ in range(3)]
    docs[1].user_data[key] = value
    path = tmp_path / "taught.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    with pytest.raises(ValueError, match=rf"^treecrf: a doc of .* has {named}, .* use join = 1"):
        list(corpus(path, join=2)(nlp))
    kept = [example.reference.user_data.get(key) is not None for example in corpus(path)(nlp)]
    assert kept == [False, True, False]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "damaged.spacy"
    path.write_bytes(b"no docs")
    with pytest.raises(ValueError, match=r"^treecrf: .*damaged\.spacy does not hold docs of spaCy"):
        list(corpus(path)(spacy.blank("en")))


def test_limit_stops_and_missing_files_are_refused(chunks: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    assert len(list(corpus(chunks, limit=2)(nlp))) == 2
    assert len(list(corpus(chunks.parent)(nlp))) == 5
    with pytest.raises(FileNotFoundError, match=r"^treecrf: .*does not exist"):
        list(corpus(tmp_path / "none.spacy")(nlp))
    (tmp_path / "folder").mkdir()
    (tmp_path / "train.conll").write_text("Ann B-PER\n", encoding="utf-8")
    for name in ("folder", "train.conll"):
        with pytest.raises(ValueError, match=rf"^treecrf: .*{name} is neither a \.spacy file"):
            list(corpus(tmp_path / name)(nlp))
    with pytest.raises(ValueError, match=r"^treecrf: path of"):
        corpus(None)


def test_synthetic_reader_needs_no_file() -> None:
    nlp = spacy.blank("xx")
    examples = list(synthetic(part="dev")(nlp))
    assert len(examples) == 100
    assert examples[0].reference[0].tag_.startswith("l")
    assert not examples[0].predicted.has_annotation("TAG")
    with pytest.raises(ValueError, match=r"^treecrf: part is 'all'"):
        synthetic(part="all")
    with pytest.raises(ValueError, match=r"^treecrf: setting is 'none'"):
        synthetic("none")


def test_registered_names() -> None:
    assert registry.readers.get("spacy_treecrf.Corpus.v1") is corpus
    assert registry.readers.get("spacy_treecrf.Synthetic.v1") is synthetic
    features = registry.misc.get("spacy_treecrf.LineFeatures.v1")()
    doc = spacy.blank("xx")("Hello?")
    assert len(features(doc)) == len(doc)
    features = registry.misc.get("spacy_treecrf.PictureFeatures.v1")()
    register_extension("pixels")
    doc[0]._.pixels = [0] * 9 + [1] + [0] * 118
    assert features(doc) == [{"ink1.1": True}, {}]
