"""The pipe does what spaCy's own trainable pipes do, for every task."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.pipeline.pipe import TreeCRF
from tests.pipeline.tiny_pipes import (
    CORPUS,
    SPAN_TASKS,
    TASKS,
    corpus,
    example,
    labels_of,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    probabilities_on,
    spans_on,
    train,
    trained_nlp,
    words_of,
)

NAMES = {
    "tag": (".", "D", "N", "P", "V"),
    "pos": ("ADP", "PRON", "PROPN", "PUNCT", "VERB"),
    "ents": ("PERSON", "PLACE"),
    "spans": ("PERSON", "PLACE"),
    "ext:tiny_kind": (".", "D", "N", "P", "V"),
}
TEXTS = [" ".join(words_of(sentence)) for sentence in CORPUS]


def test_a_blank_pipeline_has_the_factory() -> None:
    nlp = spacy.blank("en")
    assert isinstance(nlp.add_pipe("treecrf"), TreeCRF)
    assert nlp.pipe_names == ["treecrf"]


@pytest.mark.parametrize("task", TASKS)
def test_overfitting_IO(task: str, tmp_path: Any) -> None:
    nlp = new_nlp(task)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    losses = train(nlp, examples, 4)
    assert losses[-1] < 0.02
    scores = nlp.evaluate(examples)
    assert scores["treecrf_score"] == 1.0
    assert scores["treecrf_nll"] < losses[-1]
    docs = [nlp(new_doc(nlp, sentence)) for sentence in CORPUS]
    assert [labels_on(doc, task) for doc in docs] == [labels_of(s, task) for s in CORPUS]

    nlp.to_disk(tmp_path)
    nlp2 = spacy.load(tmp_path)
    again = [nlp2(new_doc(nlp2, sentence)) for sentence in CORPUS]
    assert [labels_on(doc, task) for doc in again] == [labels_on(doc, task) for doc in docs]
    assert [probabilities_on(doc, task) for doc in again] == [
        probabilities_on(doc, task) for doc in docs
    ]

    piped = list(nlp.pipe(TEXTS))
    called = [nlp(text) for text in TEXTS]
    small_batches = list(nlp.pipe(TEXTS, batch_size=2))
    for other in (called, small_batches, list(nlp.pipe(TEXTS))):
        assert [labels_on(doc, task) for doc in other] == [labels_on(doc, task) for doc in piped]
        assert [probabilities_on(doc, task) for doc in other] == [
            probabilities_on(doc, task) for doc in piped
        ]


@pytest.mark.parametrize("task", TASKS)
def test_initialize_examples(task: str) -> None:
    nlp = new_nlp(task)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    assert pipe_of(nlp).labels == NAMES[task]
    with pytest.raises(TypeError):
        nlp.initialize(get_examples=lambda: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError):
        nlp.initialize(get_examples=lambda: examples[0])  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError):
        nlp.initialize(get_examples=lambda: [])
    with pytest.raises(TypeError):
        nlp.initialize(get_examples=examples)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", TASKS)
def test_initialize_without_examples_learns_features_from_the_first_batch(task: str) -> None:
    nlp = new_nlp(task)
    for name in NAMES[task]:
        pipe_of(nlp).add_label(name)
    nlp.initialize()
    examples = corpus(nlp, task)
    train(nlp, examples, 4)
    assert nlp.evaluate(examples)["treecrf_score"] == 1.0


@pytest.mark.parametrize("task", TASKS)
def test_initialize_from_labels(task: str) -> None:
    nlp = new_nlp(task)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    data = pipe_of(nlp).label_data
    assert tuple(data) == NAMES[task]

    nlp2 = new_nlp(task)
    nlp2.config["initialize"]["components"] = {"treecrf": {"labels": data[::-1]}}
    few = corpus(nlp2, task, CORPUS[-1:])
    nlp2.initialize(lambda: few)
    assert pipe_of(nlp2).labels == tuple(data[::-1])
    train(nlp2, corpus(nlp2, task), 4)
    assert nlp2.evaluate(corpus(nlp2, task))["treecrf_score"] == 1.0


def test_labels_that_were_not_given_are_not_learned() -> None:
    nlp = new_nlp()
    nlp.config["initialize"]["components"] = {"treecrf": {"labels": ["PERSON"]}}
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 4)
    assert pipe_of(nlp).labels == ("PERSON",)
    found = {span.label_ for text in TEXTS for span in nlp(text).ents}
    assert found == {"PERSON"}


@pytest.mark.parametrize("task", TASKS)
def test_no_data(task: str) -> None:
    nlp = new_nlp(task)
    nlp.add_pipe("textcat")
    cats = {"cats": {"POSITIVE": 1.0, "NEGATIVE": 0.0}}
    examples = [Example.from_dict(nlp.make_doc(text), cats) for text in TEXTS]
    place = {"ents": "doc.ents", "spans": 'doc.spans["sc"]', "ext:tiny_kind": "token._.tiny_kind"}
    read = re.escape(place.get(task, f"token.{task}_"))
    said = rf"^treecrf: the pipe 'treecrf' has no labels, .* its task, which reads {read};"
    for spans in (examples, examples[:1]):
        with pytest.raises(ValueError, match=said):
            nlp.initialize(lambda spans=spans: spans)
    with pytest.raises(ValueError, match=r"^treecrf: the pipe 'treecrf' has no labels"):
        nlp.initialize()


def forget(doc: Doc, task: str, i: int) -> None:
    """Take the annotation of one token off a gold doc."""
    if task == "tag":
        doc[i].tag_ = ""
    elif task == "pos":
        doc[i].pos_ = ""
    elif task == "ents":
        doc.set_ents([], missing=[doc[i : i + 1]], default="unmodified")
    elif task == "spans":
        doc.spans["sc"].append(Span(doc, i, i + 1))
    else:
        doc[i]._.tiny_kind = None


@pytest.mark.parametrize("task", TASKS)
def test_incomplete_data(task: str) -> None:
    nlp = new_nlp(task)
    examples = corpus(nlp, task)
    unknown = [len(words_of(sentence)) - 1 for sentence in CORPUS]
    unknown[2] = 0  # of a sentence that ends with a verb
    unknown[4] = 2  # of a sentence that ends with an entity
    for eg, i in zip(examples, unknown, strict=True):
        forget(eg.reference, task, i)
        assert labels_on(eg.reference, task)[i] is None
    nothing = new_doc(nlp, CORPUS[0])
    examples.append(Example(nothing, new_doc(nlp, CORPUS[0])))
    nlp.initialize(lambda: examples)
    assert train(nlp, examples, 4)[-1] < 0.05
    for sentence, i in zip(CORPUS, unknown, strict=True):
        found, gold = labels_on(nlp(new_doc(nlp, sentence)), task), labels_of(sentence, task)
        assert found[:i] + found[i + 1 :] == gold[:i] + gold[i + 1 :]


@pytest.mark.parametrize("task", TASKS)
def test_misaligned_tokens_are_learned_where_they_align(task: str) -> None:
    nlp = new_nlp(task)
    examples = []
    for sentence in CORPUS:
        reference = example(nlp, task, sentence).reference
        pieces = [piece for word in words_of(sentence) for piece in (word[:1], word[1:]) if piece]
        spaces = [
            i == 1 or len(word) == 1
            for word in words_of(sentence)
            for i in range(1 + (len(word) > 1))
        ]
        examples.append(Example(Doc(nlp.vocab, words=pieces, spaces=spaces), reference))
    nlp.initialize(lambda: examples)
    assert train(nlp, examples, 4)[-1] < 0.1
    assert nlp.evaluate(examples)["treecrf_score"] > 0.9


@pytest.mark.parametrize("task", TASKS)
def test_add_label(task: str) -> None:
    pipe = pipe_of(new_nlp(task))
    first, *others = NAMES[task]
    assert pipe.labels == ()
    assert pipe.add_label(first) == 1
    assert pipe.add_label(first) == 0
    for name in others:
        assert pipe.add_label(name) == 1
    assert pipe.labels == NAMES[task]
    for bad in ("", None, 5):
        with pytest.raises(ValueError, match=r"^treecrf: cannot add the label"):
            pipe.add_label(bad)  # type: ignore[arg-type]
    assert pipe.labels == NAMES[task]


@pytest.mark.parametrize("task", TASKS)
def test_multiprocessing(task: str) -> None:
    nlp = trained_nlp(task, model={"threads": 2})  # its threads must not be there at the fork
    texts = TEXTS * 2
    alone = list(nlp.pipe(texts))
    shared = list(nlp.pipe(texts, n_process=2, batch_size=3))
    assert [doc.text for doc in shared] == texts
    assert [labels_on(doc, task) for doc in shared] == [labels_on(doc, task) for doc in alone]
    assert [probabilities_on(doc, task) for doc in shared] == [
        probabilities_on(doc, task) for doc in alone
    ]


@pytest.mark.parametrize("task", TASKS)
def test_doc_gc(task: str) -> None:
    nlp = new_nlp(task)
    for name in NAMES[task]:
        pipe_of(nlp).add_label(name)
    nlp.initialize()
    examples = corpus(nlp, task)
    train(nlp, examples, 1)
    for i in range(len(examples)):
        nlp.update(examples[i : i + 1])
    seen = [weakref.ref(eg.reference) for eg in examples]
    seen += [weakref.ref(doc) for doc in nlp.pipe(TEXTS)]
    examples.clear()
    gc.collect()
    assert not any(ref() for ref in seen)


@pytest.mark.parametrize("task", SPAN_TASKS)
def test_spans_outlive_the_stream_of_docs(task: str) -> None:
    nlp = trained_nlp(task)
    spans = [span for doc in nlp.pipe(TEXTS) for span in spans_on(doc, task)]
    gc.collect()
    assert [span.text for span in spans[:3]] == ["Ann", "New York", "Bob Lee"]
    assert all(0.5 < span._.treecrf_prob <= 1.0 for span in spans)


def test_preset_entities_are_kept_and_decide_what_is_around_them() -> None:
    nlp = trained_nlp()
    free = nlp(new_doc(nlp, CORPUS[0]))
    assert [(ent.text, ent.label_) for ent in free.ents] == [
        ("Ann", "PERSON"),
        ("New York", "PLACE"),
    ]
    doc = new_doc(nlp, CORPUS[0])
    doc.ents = [Span(doc, 3, 4, label="PRODUCT")]
    nlp(doc)
    # "New" can no longer be the first word of an entity that ends with "York"
    found = {(ent.text, ent.label_) for ent in doc.ents}
    assert {("Ann", "PERSON"), ("York", "PRODUCT")} <= found
    assert not any(ent.end == 4 and ent.start < 3 for ent in doc.ents)
    blocked = new_doc(nlp, CORPUS[0])
    blocked.set_ents([], blocked=[blocked[0:1]], default="missing")
    assert [ent.text for ent in nlp(blocked).ents] == ["New York"]


def test_overwrite_replaces_preset_entities() -> None:
    nlp = new_nlp({"@misc": "spacy_treecrf.EntsTask.v1", "overwrite": True})
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 4)
    doc = new_doc(nlp, CORPUS[0])
    doc.ents = [Span(doc, 3, 4, label="PRODUCT")]
    assert [(ent.text, ent.label_) for ent in nlp(doc).ents] == [
        ("Ann", "PERSON"),
        ("New York", "PLACE"),
    ]


def test_preset_tags_stay_and_inform_their_neighbours() -> None:
    nlp = trained_nlp("tag")
    doc = new_doc(nlp, CORPUS[0])
    doc[1].tag_ = "N"
    doc[2].tag_ = "UNHEARD"
    nlp(doc)
    assert [token.tag_ for token in doc] == ["N", "N", "UNHEARD", "N", "."]
    assert doc[1]._.treecrf_prob == pytest.approx(1.0)


def test_two_pipes_score_under_their_own_names() -> None:
    nlp = new_nlp("tag")
    nlp.rename_pipe("treecrf", "tags")
    pipe_of(nlp, "tags").name = "tags"
    examples = corpus(nlp, "tag")
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    scores = nlp.evaluate(examples)
    assert scores["tags_nll"] == scores["treecrf_nll"]
    assert scores["tags_score"] == scores["tag_acc"] == scores["treecrf_score"]


def test_repr_tells_task_labels_rounds_and_features() -> None:
    assert repr(pipe_of(new_nlp("tag"))) == (
        "<TreeCRF 'treecrf': task AttributeTask(attr='TAG', overwrite=False); no labels; "
        "not trained>"
    )
    pipe = pipe_of(trained_nlp("ents", steps=1))
    n_features = len(pipe.shim.trained.columns.feature_names)
    assert repr(pipe) == (
        "<TreeCRF 'treecrf': task EntsTask(overwrite=False); 2 labels (PERSON, PLACE); 5 rounds; "
        f"{n_features} features of lower, shape, suffix>"
    )


def test_repr_of_many_labels_is_short() -> None:
    pipe = pipe_of(new_nlp("tag"))
    for i in range(11):
        pipe.add_label(f"T{i}")
    assert "11 labels (T0, T1, T2, T3, T4, T5, T6, T7 and 3 more); not trained" in repr(pipe)
