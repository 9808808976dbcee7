"""The hidden Markov model of Hao and Fern."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import spacy

from spacy_treecrf.corpora import Synthetic, load_corpus
from spacy_treecrf.corpora.readers import synthetic
from spacy_treecrf.corpora.synthetic import synthetic_model


def test_observations_and_transitions_have_the_probabilities_asked_for() -> None:
    model = Synthetic(n_labels=5, n_observations=6, p_o=0.7, k_o=2, p_l=0.4, k_l=3, seed=1)
    shown: Counter[tuple[str, str]] = Counter()
    followed: Counter[tuple[str, str]] = Counter()
    for sequence in model.sample(400, length=30):
        labels = sequence.labels["tag"]
        shown.update(zip(labels, sequence.words, strict=True))
        followed.update(pairwise(labels))
    for i in range(5):
        observations = {o: n for (label, o), n in shown.items() if label == f"l{i}"}
        labels = {after: n for (label, after), n in followed.items() if label == f"l{i}"}
        assert len(observations) == 3
        assert len(labels) == 4
        assert observations[f"o{i}"] / sum(observations.values()) == pytest.approx(0.7, abs=0.05)
        assert labels[f"l{i}"] / sum(labels.values()) == pytest.approx(0.4, abs=0.05)


def test_parts_are_of_one_model_and_differ_and_come_again() -> None:
    splits = load_corpus("synthetic")
    assert [len(splits[part]) for part in ("train", "dev", "test")] == [500, 100, 500]
    assert splits["train"][0].words != splits["test"][0].words
    assert splits == load_corpus("synthetic")
    assert splits != load_corpus("synthetic", seed=1)
    assert splits != load_corpus("synthetic", split="both")
    seen = {part: _transitions(splits[part]) for part in ("train", "test")}
    assert seen["test"] <= seen["train"]
    assert len(seen["train"]) == 40 * 3


def _transitions(sequences) -> set[tuple[str, str]]:
    return {pair for sequence in sequences for pair in pairwise(sequence.labels["tag"])}


@pytest.mark.parametrize(
    "wrong", [{"p_o": 1.5}, {"p_l": -0.1}, {"k_o": 0}, {"k_o": 40}, {"k_l": 40}]
)
def test_impossible_models_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: {next(iter(wrong))} is "):
        Synthetic(**wrong)


def test_settings_can_be_changed_one_by_one() -> None:
    model = synthetic_model("both", seed=3, n_labels=300, n_observations=50, k_l=5)
    assert (model.n_labels, model.n_observations, model.k_l, model.p_o) == (300, 50, 5, 0.6)
    assert len({label for r in model.sample(200) for label in r.labels["tag"]}) > 200
    with pytest.raises(ValueError, match=r"^treecrf: setting is 'none'; use one of 'transition'"):
        synthetic_model("none")


def test_reader_makes_other_models() -> None:
    nlp = spacy.blank("xx")
    few = list(synthetic("both", "dev", n_labels=6, n_observations=7, k_o=3)(nlp))
    assert len(few) == 100
    tags = {token.tag_ for example in few for token in example.reference}
    words = {token.text for example in few for token in example.predicted}
    assert tags == {f"l{i}" for i in range(6)}
    assert words <= {f"o{i}" for i in range(7)}
