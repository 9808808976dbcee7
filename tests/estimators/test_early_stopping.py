"""Early stopping by the F1 of spans, in every model that is learned round by round."""

from __future__ import annotations

from typing import Any

import pytest

from spacy_treecrf import BoostedCRF, BoostedMEMM, PerceptronTagger
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.estimators import SequenceEstimator

WORDS = ["in", "Oslo", "and", "New", "York", "they", "Ann", "Lee"] * 3
LABELS = ["O", "B-LOC", "O", "B-LOC", "I-LOC", "O", "B-PER", "I-PER"] * 3
X = [[{"word": word} for word in WORDS[i : i + 6]] for i in range(16)]
Y = [LABELS[i : i + 6] for i in range(16)]
TINY: dict[str, Any] = {"rounds": 6, "min_count": 1, "threads": 1}
MODELS: dict[str, SequenceEstimator] = {
    "crf": BoostedCRF(**TINY, linear_rounds=2, min_rows=1),
    "memm": BoostedMEMM(**TINY, linear_rounds=2, min_rows=1),
    "memm from the right": BoostedMEMM(**TINY, linear_rounds=2, min_rows=1, right_to_left=True),
    "perceptron": PerceptronTagger(**TINY),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_f1_of_spans_decides_and_reaches_one_on_what_is_known(model: SequenceEstimator) -> None:
    seen: list[RoundInfo] = []
    model.set_params(callback=seen.append)
    model.fit(X, Y, X, Y)
    assert {info.monitor for info in seen} == {"f1"}
    assert seen[model.rounds_ - 1].held_out_f1 == 1.0
    assert model.predict(X) == Y


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_labels_are_judged_as_before(model: SequenceEstimator) -> None:
    seen: list[RoundInfo] = []
    model.set_params(callback=seen.append)
    plain = [[label.replace("-", "") for label in y] for y in Y]
    model.fit(X, plain, X, plain)
    expected = "accuracy" if isinstance(model, PerceptronTagger) else "log_likelihood"
    assert {info.monitor for info in seen} == {expected}
    assert all(info.held_out_f1 is None for info in seen)
