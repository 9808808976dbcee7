"""Explanations as data."""

from __future__ import annotations

import json

import pytest

from spacy_treecrf.explain.explanation import (
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


def example(position: int = 1) -> TokenExplanation:
    view = View(0.5, 1, 0.5)
    return TokenExplanation(
        position=position,
        text="Rome",
        predicted=10,
        label=10,
        against=None,
        score=3.0,
        base=0.5,
        contributions=(Contribution("word=Rome", "word", "linear", 1.5),),
        left=Transition("<start>", 0.75, False),
        right=Transition(2, 0.25, True),
        interactions=(),
        probabilities={10: 0.75, 2: 0.25},
        context=Context(view, view, view, view),
        effects=(Effect("word=Rome", "word", None, 0.75, 0.5, 2),),
        missing=(),
    )


def test_dict_holds_only_what_json_has_and_keeps_the_order_of_labels() -> None:
    stored = example().to_dict()
    assert json.loads(json.dumps(stored)) == stored
    assert stored["probabilities"] == [
        {"label": 10, "probability": 0.75},
        {"label": 2, "probability": 0.25},
    ]
    assert stored["contributions"][0]["feature"] == "word=Rome"


def test_probability_is_that_of_the_explained_label() -> None:
    assert example().probability == 0.75


def test_sequence_finds_the_explanation_of_a_position_and_refuses_others() -> None:
    sequence = SequenceExplanation(
        texts=("in", "Rome"),
        whitespace=(" ", ""),
        labels=("O", "U-LOC"),
        probabilities=(0.9, 0.8),
        spans=(ExplainedSpan(1, 2, "LOC", 0.8),),
        alternatives=(Alternative(("O", "O"), 0.1),),
        tokens=(example(1),),
    )
    assert sequence.at(1).text == "Rome"
    assert json.loads(json.dumps(sequence.to_dict())) == sequence.to_dict()
    with pytest.raises(ValueError, match=r"position 0 is not explained; these are: \[1\]"):
        sequence.at(0)
