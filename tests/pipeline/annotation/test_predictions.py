"""The way of a batch through the pipe: scored once, searched once, spans read once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.labels import biluo
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.memm.memm import MEMM
from spacy_treecrf.models.quick_prediction import FirstRows
from spacy_treecrf.pipeline.tasks.span_tasks import EntsTask
from tests.pipeline.tiny_pipes import CORPUS, TINY_FEATURES, corpus, new_doc, train, trained_nlp

MEMM_BEAM = {
    "@architectures": "spacy_treecrf.MEMM.v1",
    "search": "beam",
    "beam_width": 3,
    "linear_rounds": 2,
    "min_rows": 1,
    "min_count": 1,
    "threads": 1,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            found[f"{getattr(owner, '__name__', owner).rpartition('.')[2]}.{name}"] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(Workers, "__init__")
    count(CRF, "scores")
    count(FirstRows, "find")  # which scores the few rows of a pipe's first calls
    count(MEMM, "scores")
    count(MEMM, "search")
    count(biluo, "biluo_spans")
    return found


def test_a_batch_is_scored_once_and_its_spans_are_read_once(calls: Counter[str]) -> None:
    nlp = trained_nlp("ents")
    docs = [new_doc(nlp, sentence) for sentence in CORPUS[:4]]
    calls.clear()
    assert any(doc.ents for doc in nlp.pipe(docs))
    assert calls == {"Workers.__init__": 1, "FirstRows.find": 1, "biluo.biluo_spans": len(docs)}


def test_the_beam_of_a_memm_is_searched_once(calls: Counter[str]) -> None:
    nlp = spacy.blank("xx")
    config = {"task": "ents", "model": MEMM_BEAM, "features": TINY_FEATURES}
    nlp.add_pipe("treecrf", config=config)
    examples = corpus(nlp, "ents")
    nlp.initialize(lambda: examples)
    train(nlp, examples, 3)
    calls.clear()
    doc = nlp(new_doc(nlp, CORPUS[0]))
    assert doc.ents
    assert calls == {"Workers.__init__": 1, "MEMM.search": 1, "biluo.biluo_spans": 1}


class LabelsOnly:
    """A task of spans as of 0.1, which takes labels alone."""

    constraints = "biluo"

    def __init__(self) -> None:
        self.task = EntsTask()
        self.score_weights = self.task.score_weights

    def gold(self, example: Any) -> list[Label]:
        return self.task.gold(example)

    def preset(self, doc: Doc) -> list[Label] | None:
        return self.task.preset(doc)

    def annotate(self, doc: Doc, labels: list[str]) -> list[Span]:
        return self.task.annotate(doc, labels)

    def score(self, examples: Any, **kwargs: Any) -> dict[str, Any]:
        return self.task.score(examples, **kwargs)


@pytest.mark.parametrize("min_prob", [0.0, 0.999])
def test_tasks_that_take_labels_alone_get_the_same_spans(min_prob: float) -> None:
    nlp = trained_nlp("ents", min_prob=min_prob)
    pipe = nlp.get_pipe("treecrf")

    def entities() -> list[list[TokenSpan]]:
        docs = [nlp(new_doc(nlp, sentence)) for sentence in CORPUS]
        return [
            [(ent.start, ent.end, ent.label_, ent._.treecrf_prob) for ent in doc.ents]
            for doc in docs
        ]

    expected = entities()
    pipe.task = LabelsOnly()
    assert entities() == expected
    assert any(expected) == (min_prob == 0.0)
