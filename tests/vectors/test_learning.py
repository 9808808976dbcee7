"""Vectors from text: what is read, what spaCy finds in the pipeline, what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_treecrf.vectors.learning import TextSize, VectorSettings, learn_vectors
from spacy_treecrf.vectors.sentences import read_sentences

ANIMALS, METALS = ["cat", "dog", "cow", "hen"], ["iron", "zinc", "gold", "lead"]


def two_worlds(n: int = 1500) -> list[list[str]]:
    """Sentences in which animals and metals each keep company with verbs of their own."""
    drawn = random.Random(0)
    sentences = []
    for _ in range(n):
        nouns, verbs = drawn.choice([(ANIMALS, ["eats", "runs"]), (METALS, ["melts", "shines"])])
        sentences.append([drawn.choice(nouns), drawn.choice(verbs), "beside", drawn.choice(nouns)])
    return sentences


def learned(settings: VectorSettings) -> tuple[Language, TextSize]:
    nlp = spacy.blank("en")
    return nlp, learn_vectors(two_worlds(), nlp, settings)


def test_words_of_one_company_are_closer_than_words_of_two() -> None:
    nlp, size = learned(VectorSettings(dimensions=12, epochs=25, rows=500))
    assert size == TextSize(words=6000, different=13, learned=13)
    assert nlp.vocab.vectors.shape == (500, 12)

    def mean(pairs: list[tuple[str, str]]) -> float:
        return float(np.mean([nlp.vocab[a].similarity(nlp.vocab[b]) for a, b in pairs]))

    within = [(a, b) for group in (ANIMALS, METALS) for a in group for b in group if a < b]
    across = [(a, b) for a in ANIMALS for b in METALS]
    assert mean(within) > mean(across) + 0.2


def test_one_thread_gives_the_same_vectors_twice() -> None:
    settings = VectorSettings(dimensions=4, epochs=2, rows=100)
    one, other = (learned(settings)[0].vocab.vectors.data for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert one.any()


@pytest.mark.parametrize("lower", [False, True])
def test_case_matters_only_if_it_is_asked_for(lower: bool) -> None:
    nlp, _ = learned(VectorSettings(dimensions=4, epochs=2, rows=100, lower=lower))
    small, large = (doc[0].vector for doc in map(nlp.make_doc, ("cat", "CAT")))
    assert np.array_equal(small, large) == lower


def test_lines_and_docs_become_sentences_and_blanks_are_no_words(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    text, docs = tmp_path / "a.txt", tmp_path / "b.spacy"
    text.write_text("Ada met Bob.\n\n   \r\nZoë's 1 000 ducks\n", encoding="utf-8-sig")
    DocBin(docs=[Doc(nlp.vocab, words=["New York", " ", "is", "big"])]).to_disk(docs)
    assert list(read_sentences([text, docs], nlp, "utf-8")) == [
        ["Ada", "met", "Bob", "."],
        ["Zoë", "'s", "1", "000", "ducks"],
        ["New", "York", "is", "big"],
    ]


def test_a_line_longer_than_spacy_takes_is_cut(tmp_path: Path) -> None:
    nlp = spacy.blank("en", config={"nlp": {}})
    nlp.max_length = 10
    text = tmp_path / "long.txt"
    text.write_text("one two three four five", encoding="utf-8")
    read = list(read_sentences([text], nlp, "utf-8"))
    assert "".join(word for words in read for word in words) == "onetwothreefourfive"
    assert all(len(" ".join(words)) <= 10 for words in read)


def test_text_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"first\nZo\xeb\n")
    with pytest.raises(ValueError, match=r"latin\.txt:2: this is no text in utf-8.* by --encoding"):
        list(read_sentences([latin], nlp, "utf-8"))
    assert list(read_sentences([latin], nlp, "latin-1")) == [["first"], ["Zoë"]]
    with pytest.raises(ValueError, match=r"unknown encoding: latin0; .* e\.g\. latin-1"):
        list(read_sentences([latin], nlp, "latin0"))
    with pytest.raises(ValueError, match=r"cannot read .*absent\.txt: No such file"):
        list(read_sentences([tmp_path / "absent.txt"], nlp, "utf-8"))
    with pytest.raises(ValueError, match=r"of 3 words in the text, 0 occur at least 2 times"):
        learn_vectors([["a", "b", "c"]], nlp, VectorSettings())
