"""Made-up explanations for tests of pages, which show whatever they are given."""

from __future__ import annotations

from random import Random

from spacy_treecrf.explain.explanation import (
    END,
    START,
    Alternative,
    Context,
    Contribution,
    Effect,
    ExplainedSpan,
    SequenceExplanation,
    TokenExplanation,
    Transition,
    View,
)

MARKUP = "<img src=x onerror=alert(1)>"
WORDS = ["Mary", "Shaw", "of", "the", MARKUP, "of", "England", "went", "to", "Leeds", "."]
LABELS = ["B-PER", "L-PER", "O", "O", "B-ORG", "I-ORG", "L-ORG", "O", "O", "U-LOC", "O"]
SPANS = (
    ExplainedSpan(0, 2, "PER", 0.99),
    ExplainedSpan(4, 7, "ORG", 0.55),
    ExplainedSpan(9, 10, "LOC", 0.2),
)
TAGS = ["N", "N", "P", "D", "N", "P", "N", "V", "P", "N", "."]


def token(rng: Random, position: int, label: str) -> TokenExplanation:
    """An explanation with twenty features, none of whose numbers means anything."""
    values = sorted((rng.gauss(0.0, 1.0) for _ in range(20)), key=lambda value: -abs(value))
    contributions = tuple(
        Contribution(f"lower[{i}]={WORDS[i % 11]}", f"lower[{i}]", ("linear", "trees")[i % 2], v)
        for i, v in enumerate(values)
    )
    base, left, right = 0.1, Transition(START, 0.5, False), Transition(END, -0.3, True)
    return TokenExplanation(
        position=position,
        text=WORDS[position],
        predicted=label,
        label=label,
        against=None,
        score=base + sum(values) + left.value + right.value,
        base=base,
        contributions=contributions,
        left=left,
        right=right,
        interactions=(),
        probabilities={label: 0.93, "other": 0.05, "U-ORG": 0.02},
        context=Context(
            *(View(p, "other", 1 - p) for p in (0.4, 0.6, 0.7)), View(0.93, label, 0.93)
        ),
        effects=(
            Effect("lower[0]=<b>", "lower[0]", None, 0.93, 0.21, "other"),
            Effect("lower[0]=<b>", "lower[0]", "lower[0]=york", 0.93, 0.97, label),
        ),
        missing=(),
    )


def entities(rng: Random) -> SequenceExplanation:
    """A sentence with three entities, whose tokens are explained, and one of them uncertain."""
    other = [*LABELS[:9], "U-ORG", "O"]
    return SequenceExplanation(
        texts=tuple(WORDS),
        whitespace=(*" " * 9, "", ""),
        labels=tuple(LABELS),
        probabilities=(*[0.99] * 9, 0.6, 1.0),
        spans=SPANS,
        alternatives=(Alternative(tuple(LABELS), 0.5), Alternative(tuple(other), 0.2)),
        tokens=tuple(token(rng, i, label) for i, label in enumerate(LABELS) if label != "O"),
    )


def tags(rng: Random) -> SequenceExplanation:
    """A sentence with a tag for each token, all of them explained."""
    return SequenceExplanation(
        texts=tuple(WORDS),
        whitespace=(),
        labels=tuple(TAGS),
        probabilities=tuple(rng.random() for _ in TAGS),
        spans=(),
        alternatives=(Alternative(tuple(TAGS), 0.5), Alternative(("V", *TAGS[1:]), 0.4)),
        tokens=tuple(token(rng, i, label) for i, label in enumerate(TAGS)),
    )
