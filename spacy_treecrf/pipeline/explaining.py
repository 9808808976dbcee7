"""Explanations of docs: why their tokens got their labels, by the pipe that labels them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from spacy.tokens import Doc

from spacy_treecrf.explain.explainer import Question, explainer_of
from spacy_treecrf.explain.explanation import (
    Alternative,
    Effect,
    ExplainedSpan,
    SequenceExplanation,
    TokenExplanation,
)
from spacy_treecrf.explain.reading import Asked
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.pipeline.annotation.combining import best_labellings
from spacy_treecrf.pipeline.annotation.predictions import (
    Prediction,
    predictions_of,
    with_probabilities,
)
from spacy_treecrf.pipeline.pipe_protocols import ScoringPipe

# Annotation that a doc with another word in it keeps.
KEPT = ("TAG", "POS", "MORPH", "LEMMA", "DEP", "HEAD", "SENT_START", "ENT_IOB", "ENT_TYPE")
TOKEN = "token"  # the column of effects that replace a whole word


@dataclass(frozen=True)
class DocExplainer:
    """A doc under a pipe, scored once for all that is asked about it.

    As for marginals, what the doc is annotated with already rules no label out.
    """

    pipe: ScoringPipe
    doc: Doc
    asked: Asked
    prediction: Prediction

    @classmethod
    def of(cls, pipe: ScoringPipe, doc: Doc, predictor: Predictor) -> DocExplainer:
        scored = pipe.agreed([doc], predictor.apply(pipe.encode([doc])))
        has_spans = pipe.task.constraints == "biluo"
        labels = pipe.shim.labels
        found, ids = predictions_of([doc], scored, labels, has_spans, pipe.expected_f1)
        (prediction,) = with_probabilities(found, ids, scored)
        return cls(pipe, doc, Asked(predictor, scored, ids, pipe.shim.labels), prediction)

    def chosen(self, tokens: Sequence[int] | None) -> list[int]:
        """The tokens to explain: those given, or those of all spans, or all where labels are none.

        Negative numbers count from the end, as in spaCy.
        """
        n = len(self.doc)
        if tokens is None:
            if self.pipe.task.constraints != "biluo":
                return list(range(n))
            return [t for start, end, _ in self.prediction.spans for t in range(start, end)]
        for token in tokens:
            if not -n <= token < n:
                raise ValueError(f"treecrf: token {token} is not in the doc, which has {n} tokens")
        return sorted({int(token) % n for token in tokens})

    def tokens(
        self, chosen: Sequence[int], question: Question, words: Sequence[str]
    ) -> list[TokenExplanation]:
        """Explanations of tokens. words: Words that are tried in the place of each."""
        model = self.asked.predictor.model
        found = explainer_of(model).explain(self.asked, chosen, question)
        return [
            replace(
                one,
                position=token,
                text=self.doc[token].text,
                effects=(*self._effects_of_words(token, one, words), *one.effects),
            )
            for token, one in zip(chosen, found, strict=True)
        ]

    def _effects_of_words(
        self, token: int, explained: TokenExplanation, words: Sequence[str]
    ) -> list[Effect]:
        if not words:
            return []
        docs = [_with_word(self.doc, token, word) for word in words]
        data = self.pipe.encode(docs)
        n = len(self.doc)
        nodes = self.pipe.agreed(docs, self.asked.predictor.apply(data)).marginals()
        names = self.pipe.shim.labels
        label = names.index(str(explained.label))
        return [
            Effect(
                self.doc[token].text,
                TOKEN,
                word,
                explained.probability,
                float(nodes[i * n + token, label]),
                names[int(nodes[i * n + token].argmax())],
            )
            for i, word in enumerate(words)
        ]

    def sequence(self, tokens: Sequence[TokenExplanation], nbest: int) -> SequenceExplanation:
        """The doc with these explanations of tokens."""
        prediction = self.prediction
        assert prediction.probabilities is not None
        assert prediction.span_probabilities is not None
        spans = zip(prediction.spans, prediction.span_probabilities, strict=True)
        return SequenceExplanation(
            texts=tuple(token.text for token in self.doc),
            whitespace=tuple(token.whitespace_ for token in self.doc),
            labels=tuple(prediction.labels),
            probabilities=tuple(prediction.probabilities.tolist()),
            spans=tuple(ExplainedSpan(*span, probability) for span, probability in spans),
            alternatives=self._alternatives(nbest),
            tokens=tuple(tokens),
        )

    def _alternatives(self, nbest: int) -> tuple[Alternative, ...]:
        """The best combinations of the best labellings of the doc's sequences."""
        names = self.pipe.shim.labels
        nbest = min(nbest, len(names) ** min(len(self.doc), 64))
        if not nbest:
            return ()
        best = best_labellings(self.asked.scored.nbest(nbest), names, nbest)
        return tuple(Alternative(tuple(labels), probability) for labels, probability in best)


def _with_word(doc: Doc, token: int, word: str) -> Doc:
    """The doc with another word in the place of a token, and the same annotation."""
    if not isinstance(word, str) or not word.strip():
        raise ValueError(f"treecrf: {word!r} is no word that could be in the place of a token")
    words = [one.text for one in doc]
    words[token] = word
    other = Doc(doc.vocab, words=words, spaces=[bool(one.whitespace_) for one in doc])
    values: Any = doc.to_array(list(KEPT))
    other.from_array(list(KEPT), values)
    token_at = {one.idx: one.i for one in doc}
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and key[0] == "._." and key[3] is None:  # no span's
            _, name, index, _ = key
            place = other if index is None else other[token_at[index]]
            place._.set(name, value)
    return other
