"""Texts in the order in which to annotate them: read by a tagger, judged, chosen, and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.formats.annotated_text import AnnotatedText, LabelledSpan
from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels
from spacy_treecrf.models.predictor import ScoredSequences
from spacy_treecrf.models.spans.read_spans import read_span_probabilities
from spacy_treecrf.suggest.selection import Candidate, Choice, choose
from spacy_treecrf.suggest.uncertainty import (
    COMMITTEE,
    doubt,
    predicted_spans,
    uncertainties,
)

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Text:
    """A text of the source: a doc, or a sequence of a column file.

    number: Its number in the source, from 0. spans: What the model would annotate, with its
        probabilities.
    """

    number: int
    text: str
    tokens: tuple[tuple[int, int], ...]
    spans: tuple[LabelledSpan, ...]
    candidate: Candidate

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.tokens]

    def annotated(self) -> AnnotatedText:
        """The text as formats write it: nobody has annotated it yet."""
        return AnnotatedText(self.text, self.spans, self.tokens, predicted=True)


@dataclass(frozen=True)
class Chosen:
    """A chosen text; rank 1 is the first. gain: What made it the next one."""

    rank: int
    gain: float
    text: Text

    def to_dict(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "number": self.text.number,
            "value": self.text.candidate.value,
            "gain": self.gain,
            "tokens": len(self.text.tokens),
            "text": self.text.text,
        }


@dataclass(frozen=True)
class Question:
    """How texts are judged. others: The further members of a committee."""

    strategy: str
    others: Sequence[Tagger] = field(default=())

    def __post_init__(self) -> None:
        if self.strategy == COMMITTEE and not self.others:
            raise ValueError(
                "treecrf: a committee needs two models or more; name others by --committee, for "
                "instance the same training with another --seed"
            )


def read_texts(
    tagger: Tagger,
    read: Callable[[Tagger], Iterable[Chunk]],
    question: Question,
) -> Iterator[Text]:
    """All texts of a source, judged. read: What reads the source by a tagger, in chunks."""
    number = 0
    with Workers(tagger.threads) as workers:
        for chunk, *twins in zip_longest(read(tagger), *(read(other) for other in question.others)):
            for other, twin in zip(question.others, twins, strict=True):
                if _tokens(chunk) != _tokens(twin) or not _same_words(chunk, twin):
                    raise ValueError(
                        f"treecrf: {tagger.name} and {other.name} cut the texts into different "
                        "tokens; make a committee of models with the same tokenizer, or pass a "
                        "column file"
                    )
            scored = tagger.apply(chunk, workers)
            others = [
                _same_labels(tagger, other, twin, workers)
                for other, twin in zip(question.others, twins, strict=True)
            ]
            for text in _texts(tagger, chunk, scored, uncertainty_of(question, others), number):
                number = text.number + 1
                yield text


def _tokens(chunk: Chunk | None) -> list[tuple[int, int]] | None:
    """The rows of each text; None where a tagger has read no more chunks."""
    return None if chunk is None else _units(chunk, chunk.data.offsets.tolist())


def _same_words(chunk: Chunk, twin: Chunk) -> bool:
    """Whether tokens of docs are equal; rows of a column file are the same for all taggers."""
    if chunk.docs is None or twin.docs is None:
        return True
    mine, theirs = ([t.text for doc in one.docs or () for t in doc] for one in (chunk, twin))
    return mine == theirs


def choose_texts(texts: Sequence[Text], choice: Choice) -> list[Chosen]:
    """The texts to annotate, in their order."""
    found = choose([text.candidate for text in texts], choice)
    return [Chosen(rank, gain, texts[i]) for rank, (i, gain) in enumerate(found, start=1)]


def uncertainty_of(
    question: Question, others: Sequence[Doubles]
) -> Callable[[ScoredSequences, list[str]], Doubles]:
    return lambda scored, labels: uncertainties(question.strategy, scored, labels, others)


def _same_labels(tagger: Tagger, other: Tagger, chunk: Chunk, workers: Workers) -> Doubles:
    """Marginals of another member, in the order of the first one's labels."""
    mine, theirs = tagger.model.labels, other.model.labels
    if set(mine) != set(theirs):
        raise ValueError(
            f"treecrf: {tagger.name} and {other.name} have different labels; make a committee of "
            "models that have learned the same task"
        )
    marginals = other.apply(chunk, workers).marginals()
    return marginals[:, [theirs.index(label) for label in mine]]


def _texts(
    tagger: Tagger,
    chunk: Chunk,
    scored: ScoredSequences,
    uncertainty: Callable[[ScoredSequences, list[str]], Doubles],
    number: int,
) -> Iterator[Text]:
    """The texts of a chunk; a doc that has several sequences is one text."""
    labels = tagger.model.labels
    values = uncertainty(scored, labels)
    doubts = doubt(scored)
    spans = _predicted_spans(scored, labels)
    offsets = scored.data.offsets
    for i, (first, last) in enumerate(_units(chunk, offsets.tolist())):
        own = np.flatnonzero((offsets[:-1] >= first) & (offsets[:-1] < last))
        text, tokens = _text_of(chunk, i)
        words = [text[a:b].lower() for a, b in tokens]
        candidate = Candidate(float(values[own].sum()), words, doubts[first:last].tolist())
        inside = tuple(
            LabelledSpan(tokens[a - first][0], tokens[b - first - 1][1], name or "span", p)
            for (a, b, name), p in spans
            if first <= a < last
        )
        yield Text(number + i, text, tokens, inside, candidate)


def _units(chunk: Chunk, offsets: list[int]) -> list[tuple[int, int]]:
    """The rows of each text of a chunk: of docs, or of sequences."""
    if chunk.docs is None:
        return list(pairwise(offsets))
    ends = np.cumsum([0, *map(len, chunk.docs)]).tolist()
    return list(pairwise(ends))


def _text_of(chunk: Chunk, i: int) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The characters of a text, and where its tokens are; column files have blanks between."""
    if chunk.docs is not None:
        doc = chunk.docs[i]
        return doc.text, tuple((token.idx, token.idx + len(token)) for token in doc)
    words = chunk.words(i)
    tokens = []
    start = 0
    for word in words:
        tokens.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), tuple(tokens)


def _predicted_spans(scored: ScoredSequences, labels: list[str]) -> list[tuple[TokenSpan, float]]:
    if not are_span_labels(labels):
        return []
    spans = predicted_spans(scored, labels)
    chances = read_span_probabilities(scored, spans, labels)
    return [(span, round(float(p), 4)) for span, p in zip(spans, chances, strict=True)]
