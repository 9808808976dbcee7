"""A small corpus annotated for every task, and pipes that learn it in a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.pipeline.tasks import make_task

TASKS = ["tag", "pos", "ents", "spans", "ext:tiny_kind"]
SPAN_TASKS = ["ents", "spans"]
TOKEN_TASKS = ["tag", "pos", "ext:tiny_kind"]

# word|tag|BILUO; the names of words decide, and so do their neighbours: "Paris" is both
CORPUS = [
    "Ann|N|U-PERSON saw|V|O New|N|B-PLACE York|N|L-PLACE .|.|O",
    "Bob|N|B-PERSON Lee|N|L-PERSON left|V|O Paris|N|U-PLACE .|.|O",
    "in|P|O Rome|N|U-PLACE Ann|N|B-PERSON Lee|N|L-PERSON slept|V|O",
    "we|D|O left|V|O Rome|N|U-PLACE with|P|O Bob|N|U-PERSON .|.|O",
    "Paris|N|B-PERSON Lee|N|L-PERSON saw|V|O us|D|O in|P|O New|N|B-PLACE York|N|L-PLACE",
    "they|D|O slept|V|O .|.|O",
]
POS_OF_TAG = {"N": "PROPN", "V": "VERB", "P": "ADP", "D": "PRON", ".": "PUNCT", "X": "X"}
TINY_MODEL = {
    "@architectures": "spacy_treecrf.BoostedCRF.v1",
    "linear_rounds": 2,
    "leaves": 8,
    "min_rows": 1,
    "min_count": 1,
    "threads": 1,
}
TINY_FEATURES = {
    "@misc": "spacy_treecrf.TokenFeatures.v1",
    "attrs": {"LOWER": [-1, 0, 1], "SHAPE": [0]},
    "prefixes": [],
    "suffixes": [2],
}


def tiny_config(
    task: Any = "ents",
    model: dict[str, Any] | None = None,
    features: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    return {
        "task": task,
        "model": {**TINY_MODEL, **(model or {})},
        "features": {**TINY_FEATURES, **(features or {})},
        **settings,
    }


def new_nlp(task: Any = "ents", **config: Any) -> Language:
    """A blank pipeline (of the language whose tokenizer is made fastest) with a new treecrf."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("treecrf", config=tiny_config(task, **config))
    return nlp


def trained_nlp(task: Any = "ents", steps: int = 4, **config: Any) -> Language:
    """Trained on CORPUS, which it then knows by heart."""
    nlp = new_nlp(task, **config)
    examples = corpus(nlp, task)
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps)
    return nlp


def pipe_of(nlp: Language, name: str = "treecrf") -> TreeCRF:
    pipe = nlp.get_pipe(name)
    assert isinstance(pipe, TreeCRF)
    return pipe


def train(nlp: Language, examples: Sequence[Example], steps: int) -> list[float]:
    """Update with all examples at once; returns the losses of the steps."""
    losses = []
    for _ in range(steps):
        of_step: dict[str, float] = {}
        nlp.update(examples, losses=of_step)
        losses.append(of_step["treecrf"])
    return losses


def corpus(
    nlp: Language, task: Any = "ents", sentences: Sequence[str] = tuple(CORPUS)
) -> list[Example]:
    return [example(nlp, task, sentence) for sentence in sentences]


def example(nlp: Language, task: Any, *sentences: str) -> Example:
    """One doc of one or several annotated sentences; only the gold doc has boundaries."""
    words = [word for sentence in sentences for word in words_of(sentence)]
    labels = [label for sentence in sentences for label in labels_of(sentence, task)]
    reference = Doc(nlp.vocab, words=words)
    make_task(task).annotate(reference, labels)
    if len(sentences) > 1:
        set_boundaries(reference, sentences)
    return Example(Doc(nlp.vocab, words=words), reference)


def set_boundaries(doc: Doc, sentences: Iterable[str]) -> None:
    starts = [i == 0 for sentence in sentences for i, _ in enumerate(words_of(sentence))]
    for token, is_start in zip(doc, starts, strict=True):
        token.is_sent_start = is_start


def new_doc(nlp: Language, *sentences: str) -> Doc:
    """The words of one sentence, or of several with their boundaries, without annotation."""
    doc = Doc(nlp.vocab, words=[word for sentence in sentences for word in words_of(sentence)])
    if len(sentences) > 1:
        set_boundaries(doc, sentences)
    return doc


def words_of(sentence: str) -> list[str]:
    return [token.split("|")[0] for token in sentence.split()]


def labels_of(sentence: str, task: Any) -> list[str]:
    columns = [token.split("|") for token in sentence.split()]
    if make_task(task).constraints == "biluo":
        return [biluo for _, _, biluo in columns]
    if task == "pos":
        return [POS_OF_TAG[tag] for _, tag, _ in columns]
    return [tag for _, tag, _ in columns]


def labels_on(doc: Doc, task: Any) -> list[str | None]:
    """The annotation of a doc, as labels of its tokens."""
    return make_task(task).gold(Example(doc, doc))


def spans_on(doc: Doc, task: Any) -> list[Span]:
    if str(task).startswith("spans"):
        return list(doc.spans["sc"])
    return list(doc.ents) if task == "ents" else []


def probabilities_on(doc: Doc, task: Any) -> list[float | None]:
    """The probabilities of the tokens, then those of the spans."""
    spans = [span._.treecrf_prob for span in spans_on(doc, task)]
    return [token._.treecrf_prob for token in doc] + spans
