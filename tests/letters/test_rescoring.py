"""Rescored labellings: probabilities by hand, and learned weights."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.letters.ngram_model import Framed
from spacy_treecrf.letters.rescoring import (
    FEATURES,
    Candidates,
    WordModels,
    _names,
    phonemes_of,
    plain_phonemes,
    rescored,
)
from spacy_treecrf.letters.weight_learning import _objective, learn_weights

BOX = Candidates("box", [["B", "AA1", "K-S"], ["B", "AA1-K", "S"], ["B", "OW1", "_"]], [-1, -2, -3])
OX = Candidates("ox", [["AA1", "K-S"], ["AA0", "K-S"]], [-0.5, -1.0])
WORDS = [("box", ["B", "AA1", "K-S"]), ("ox", ["AA1", "K-S"]), ("bob", ["B", "AA1", "B"])]


def test_phonemes_are_those_of_the_letters_that_sound() -> None:
    assert phonemes_of(["_", "K-S", "AH0", "_"]) == ("K", "S", "AH0")


def test_labellings_of_the_same_phonemes_count_together() -> None:
    features = np.array([[1.0, 0.0], [1.0, 0.5], [2.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    box, ox = rescored([BOX, OX], features, [1.0, 2.0])
    shares = np.exp([1.0, 2.0, 2.0])
    shares /= shares.sum()
    assert [one.phonemes for one in box] == [("B", "AA1", "K", "S"), ("B", "OW1")]
    assert [one.probability for one in box] == pytest.approx([shares[0] + shares[1], shares[2]])
    assert box[0].labels == ["B", "AA1-K", "S"]  # the more probable spelling of them
    assert [one.probability for one in ox] == pytest.approx([0.8807970779, 0.1192029221])
    assert ox[0].phonemes == ("AA0", "K", "S")


def test_the_best_has_the_most_probable_phonemes_whatever_their_stress() -> None:
    spoken = [["B", "AA1"], ["B", "OW1"], ["B", "AA0"], ["B", "AA2"], ["B-AA0", "_"]]
    p = [0.25, 0.4, 0.1, 0.15, 0.1]  # "B AA": 0.6; of its stresses, the first is most probable
    word = Candidates("bo", spoken, np.log(p).tolist())
    (found,) = rescored([word], np.log(p)[:, None], [1.0])
    assert [" ".join(one.phonemes) for one in found] == ["B AA1", "B OW1", "B AA0", "B AA2"]
    assert [one.probability for one in found] == pytest.approx([0.25, 0.4, 0.2, 0.15])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_is_that_of_an_enumeration(seed: int) -> None:
    draws = np.random.default_rng(seed)
    spoken = [[a, b] for a in ("AA1", "AA0", "_") for b in ("OW1", "OW0", "AA1", "_")]
    word = Candidates("ao", spoken, [0.0] * len(spoken))
    scores = draws.normal(size=(len(spoken), 1))
    (found,) = rescored([word], scores, [1.0])
    p = np.exp(scores[:, 0]) / np.exp(scores).sum()
    said = [phonemes_of(labels) for labels in spoken]

    def probability(phonemes: tuple[str, ...]) -> float:
        return float(sum(share for share, other in zip(p, said, strict=True) if other == phonemes))

    def of_any_stress(phonemes: tuple[str, ...]) -> float:
        same = {other for other in said if plain_phonemes(other) == plain_phonemes(phonemes)}
        return sum(map(probability, same))

    assert found[0].phonemes == max(said, key=lambda one: (of_any_stress(one), probability(one)))
    assert {one.phonemes for one in found} == set(said)
    for one in found:
        assert one.probability == pytest.approx(probability(one.phonemes))
    others = [one.probability for one in found[1:]]
    assert others == sorted(others, reverse=True)


def test_features_are_of_words_as_they_were_learned() -> None:
    models = WordModels.learn(WORDS, 3, 3)
    features = models.features([BOX, OX])
    assert features.shape == (5, len(FEATURES))
    assert features[:, 0].tolist() == [-1, -2, -3, -0.5, -1.0]
    assert features[:, 4].tolist() == [1, 1, 1, 1, 0]
    assert (features[0, 1:4] > features[2, 1:4]).all()
    assert features[3, 1] == features[4, 1]  # without stress they are the same
    assert (features[3, 2:4] > features[4, 2:4]).all()


def test_features_are_those_of_each_candidate_alone() -> None:
    models = WordModels.learn(WORDS, 4, 3)
    silent = Candidates("xq", [["_", "_"], ["K-S", "Z1"]], [-1.0, -9.0])  # partly unknown
    words = [BOX, silent, OX]
    rows = []
    for word in words:
        for labels, log_p in zip(word.labels, word.log_p, strict=True):
            phonemes = phonemes_of(labels)
            seen = zip(models.symbols, models.models, _names(word.letters, labels), strict=True)
            by_models = [
                float(model.log_probabilities(Framed.of([own.known(names)]))[0])
                for own, model, names in seen
            ]
            rows.append([log_p, *by_models, sum(p.endswith("1") for p in phonemes) == 1])
    assert models.features(words) == pytest.approx(np.array(rows, float))


def test_weights_raise_the_likelihood_of_right_pronunciations() -> None:
    draws = np.random.default_rng(0)
    words, gold, rows = [], [], []
    for _ in range(300):
        truth = draws.normal(size=(3, 2))
        right = int(np.argmax(truth @ [2.0, -1.0] + draws.gumbel(size=3)))
        words.append(Candidates("a", [["A"], ["B"], ["C"]], [0, 0, 0]))
        gold.append(["ABC"[right]])
        rows.append(truth)
    features = np.concatenate(rows)
    weights, likelihood = learn_weights(words, features, gold, 1e-6)
    assert weights == pytest.approx([2.0, -1.0], abs=0.5)
    for nudge in (0.05, -0.05):  # it is a maximum
        for i in range(2):
            moved = weights + nudge * np.eye(2)[i]
            found = rescored(words, features, moved)
            right = [
                next(one.probability for one in own if one.phonemes == tuple(phonemes))
                for own, phonemes in zip(found, gold, strict=True)
            ]
            assert float(np.mean(np.log(right))) < likelihood
    with pytest.raises(ValueError, match="no word has its right pronunciation"):
        learn_weights(words, features, [["Z"]] * 300, 1e-6)


def test_weights_serve_phonemes_with_and_without_their_stress() -> None:
    draws = np.random.default_rng(2)
    spoken = [["AA1"], ["AA0"], ["OW1"], ["OW0"]]
    words = [Candidates("a", spoken, [0] * 4) for _ in range(200)]
    features = draws.normal(size=(800, 2))
    gold = [spoken[i] for i in draws.integers(4, size=200)]
    weights, likelihood = learn_weights(words, features, gold, 1e-9)

    def enumerated(tried: np.ndarray) -> float:
        total = 0.0
        for i, wanted in enumerate(gold):
            p = np.exp(features[4 * i : 4 * i + 4] @ tried)
            p /= p.sum()
            without = sum(p[j] for j in range(4) if spoken[j][0][:2] == wanted[0][:2])
            total += (np.log(p[spoken.index(wanted)]) + np.log(without)) / 2
        return total / len(gold)

    assert likelihood == pytest.approx(enumerated(weights))
    for nudge in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
        assert enumerated(weights + np.array(nudge)) < likelihood


def test_the_gradient_is_the_slope_of_the_likelihood() -> None:
    draws = np.random.default_rng(1)
    X, of_word = draws.normal(size=(12, 3)), np.repeat(np.arange(3), 4)
    right = np.tile([True, False, True, False], 3)
    weights = np.array([0.3, -0.2, 0.5])
    _, gradient, _ = _objective(X, right, of_word, weights, 0.1)
    for i in range(3):
        step = 1e-5 * np.eye(3)[i]
        up, down = (_objective(X, right, of_word, weights + s, 0.1)[0] for s in (step, -step))
        assert (up - down) / 2e-5 == pytest.approx(gradient[i], abs=1e-6)
