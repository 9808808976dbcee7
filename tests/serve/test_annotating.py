"""Annotations over HTTP are those of the pipeline itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language

from tests.pipeline.tiny_pipes import CORPUS, pipe_of, trained_nlp, words_of
from tests.serve.servers import Server

TEXTS = [" ".join(words_of(sentence)) for sentence in CORPUS]
TEXTS += ["", " ", "Ann Lee  saw\nRome", "Ünï <b>Paris</b> & 🙂 York", "Bob " * 300]


@pytest.fixture(scope="module")
def nlp(model: Path) -> Language:
    return spacy.load(model)


def entities(told: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(span["start"], span["end"], span["label"]) for span in told["spans"]]


def agrees(told: dict[str, Any], nlp: Language, text: str) -> None:
    """Compare an answer with what the pipeline says of the text."""
    doc = nlp(text)
    assert told["text"] == text
    assert told["tokens"] == [token.text for token in doc]
    assert [text[a:b] for a, b in told["offsets"]] == told["tokens"]
    assert entities(told) == [(e.start_char, e.end_char, e.label_) for e in doc.ents]
    for span, entity in zip(told["spans"], doc.ents, strict=True):
        assert span["text"] == entity.text
        assert (span["first_token"], span["last_token"]) == (entity.start, entity.end - 1)
        assert span["probability"] == pytest.approx(entity._.treecrf_prob, abs=1e-6)
    expected = [token._.treecrf_prob for token in doc]
    assert told["probabilities"] == pytest.approx(expected, abs=1e-6)
    assert "nbest" not in told
    assert "marginals" not in told


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_is_annotated_as_by_the_pipeline(server: Server, nlp: Language, text: str) -> None:
    (told,) = server.annotate(text=text)
    agrees(told, nlp, text)


def test_several_texts_keep_their_order(server: Server, nlp: Language) -> None:
    told = server.annotate(texts=TEXTS * 40)
    assert len(told) == len(TEXTS) * 40
    for own, text in zip(told, TEXTS * 40, strict=True):
        agrees(own, nlp, text)
    assert server.annotate(texts=[]) == []


def test_tokens_are_kept_as_they_come(server: Server) -> None:
    words = ["Bob", "Lee", "left", "New York", "don't"]
    (one,) = server.annotate(tokens=words)
    assert one["tokens"] == words
    assert [one["text"][a:b] for a, b in one["offsets"]] == words
    assert one["labels"][:2] == ["B-PERSON", "L-PERSON"]
    assert server.annotate(sequences=[words, ["Rome"], []])[0] == one


def test_answers_are_the_same_however_requests_fall_into_batches(
    server: Server, nlp: Language
) -> None:
    """32 clients at once; the server gathers what waits."""
    wanted = TEXTS * 20
    before = server.metric("batches_total"), server.metric("texts_total")
    with ThreadPoolExecutor(32) as pool:
        told = list(pool.map(lambda text: server.annotate(text=text)[0], wanted))
    for own, text in zip(told, wanted, strict=True):
        agrees(own, nlp, text)
    assert server.metric("texts_total") - before[1] == len(wanted)
    assert server.metric("batches_total") - before[0] < len(wanted)


def test_labellings_and_marginals_are_told_where_asked_for(server: Server, nlp: Language) -> None:
    text = "Paris Lee saw Rome"
    (told,) = server.annotate(text=text, nbest=4, marginals=True)
    doc = nlp(text)
    expected = pipe_of(nlp).nbest(doc, 4)
    assert [best["labels"] for best in told["nbest"]] == [labels for labels, _ in expected]
    p = [best["probability"] for best in told["nbest"]]
    assert p == pytest.approx([q for _, q in expected], abs=1e-6)
    table = pipe_of(nlp).marginals(doc)
    names = pipe_of(nlp).sequence_labels
    for row, marginals in zip(table, told["marginals"], strict=True):
        whole = dict(zip(names, row.tolist(), strict=True))
        assert marginals == pytest.approx({n: q for n, q in whole.items() if q >= 0.0005}, abs=1e-6)
        assert list(marginals.values()) == sorted(marginals.values(), reverse=True)
    (empty,) = server.annotate(text="", nbest=2, marginals=True)
    assert empty["nbest"] == empty["marginals"] == []


def test_labels_of_tokens_are_served_where_there_are_no_spans(tmp_path: Path) -> None:
    nlp = trained_nlp("tag", probabilities=False)
    nlp.to_disk(tmp_path / "tagger")
    with Server(tmp_path / "tagger") as own:
        (told,) = own.annotate(text="Ann saw Rome")
    assert told["labels"] == [token.tag_ for token in nlp("Ann saw Rome")]
    assert told["spans"] == []
    assert told["probabilities"] is None


def test_one_of_several_treecrf_pipes_is_served(tmp_path: Path, model: Path) -> None:
    nlp = spacy.load(model)
    nlp.add_pipe("treecrf", name="tagger", source=trained_nlp("tag"))
    nlp.to_disk(tmp_path / "both")
    for name, label in [("treecrf", "U-PERSON"), ("tagger", "N")]:
        with Server(tmp_path / "both", "--pipe", name) as own:
            (told,) = own.annotate(text="Ann slept")
            health = own.client.get("/health").json()
        alone = (trained_nlp("tag") if name == "tagger" else spacy.load(model))("Ann slept")
        assert told["labels"][0] == label
        assert health["pipe"] == name
        expected = [token._.treecrf_prob for token in alone]
        assert told["probabilities"] == pytest.approx(expected, abs=1e-6)
