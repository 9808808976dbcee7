"""Explanations of the sequences that a tagger has read, of any kind of data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.explain.explainer import Question
from spacy_treecrf.explain.explanation import SequenceExplanation
from spacy_treecrf.explain.reading import Asked
from spacy_treecrf.explain.sequence import ExplainedDicts

SURE = 0.9  # tokens outside of spans whose label is less probable are explained as well
ALTERNATIVES = 5
EFFECTS = 8


def explain_chunks(
    tagger: Tagger, chunks: Iterable[Chunk], *, every_token: bool = False
) -> Iterator[SequenceExplanation]:
    """What the model says of each sequence, and why, of the tokens of spans and uncertain ones.

    every_token: Explain all tokens. Sequences are those of the model: sentences, where docs have
    them.
    """
    with Workers(tagger.threads) as workers:
        for chunk in chunks:
            spaces = _whitespace(chunk)
            evidence = tagger.apply(chunk, workers).evidence
            for s, (a, b) in enumerate(pairwise(chunk.data.offsets.tolist())):
                if a == b:
                    continue
                predictor = tagger.predictor(workers)
                scored = predictor.apply(chunk.data.part(s, s + 1))
                if evidence is not None:
                    scored = scored.with_evidence(evidence[a:b])
                asked = Asked(predictor, scored, scored.labels(), tagger.model.labels)
                sequence = ExplainedDicts(asked, range(b - a))
                texts = chunk.words(s)
                whole = sequence.sequence((), ALTERNATIVES, texts)
                places = range(b - a) if every_token else chosen_positions(whole)
                tokens = sequence.tokens(list(places), Question(effects=EFFECTS))
                named = [replace(one, text=texts[one.position]) for one in tokens]
                yield replace(whole, whitespace=tuple(spaces[a:b]), tokens=tuple(named))


def chosen_positions(sequence: SequenceExplanation) -> list[int]:
    """The tokens of spans, and those whose label is uncertain."""
    inside = {i for span in sequence.spans for i in range(span.start, span.end)}
    unsure = {i for i, p in enumerate(sequence.probabilities) if p < SURE}
    return sorted(inside | unsure)


def _whitespace(chunk: Chunk) -> Sequence[str]:
    """What follows each token of a chunk."""
    if chunk.docs is None:
        return [" "] * int(chunk.data.offsets[-1])
    return [token.whitespace_ for doc in chunk.docs for token in doc]
