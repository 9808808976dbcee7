"""Pronunciations of words, rescored: a tagger's n best labellings under models of whole words.

The tagger knows the letters around each letter and one label before it. Joint n-grams of letters
and labels know long pieces of words as they were learned (that is what Phonetisaurus is), those of
phonemes know what can be said, and a word has one main stress. The log-linear mixture of all is

    P(labels | word) ~ exp(sum_i weight_i * feature_i(word, labels)).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.corpora.aligner import JOINT, SILENT, without_stress
from spacy_treecrf.letters.ngram_learning import learn_ngrams
from spacy_treecrf.letters.ngram_model import FIRST, UNKNOWN, Floats, Framed, Ints, NgramModel
from spacy_treecrf.storage.state_reader import StateReader

# What a labelling is judged by: its log probability by the tagger, by n-grams of letters with
# labels (forward without stress, backward with it) and of phonemes, and whether it has one main
# stress. Further n-grams, each way with and without stress, added nothing on held-out words.
FEATURES = ("tagger", "forward", "backward", "phonemes", "one_stress")
MODELS = FEATURES[1:4]
MAIN_STRESS = "1"  # what phonemes with the main stress end in, as in CMUdict
_BETWEEN = "\t"  # letter and label, in the name of a symbol

Word = tuple[Sequence[str], Sequence[str]]  # letters, and a label for each


@dataclass(frozen=True)
class Candidates:
    """The labellings of a word that may be right, with their log probabilities by the tagger."""

    letters: Sequence[str]
    labels: Sequence[Sequence[str]]
    log_p: Sequence[float]


@dataclass(frozen=True)
class Pronunciation:
    """Phonemes of a word, their probability, and the most probable labels that spell them."""

    phonemes: tuple[str, ...]
    probability: float
    labels: Sequence[str]


def phonemes_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The phonemes that labels of letters stand for."""
    return tuple(p for label in labels if label != SILENT for p in label.split(JOINT))


def plain_phonemes(phonemes: Iterable[str]) -> tuple[str, ...]:
    """The same phonemes without their stress."""
    return tuple(map(without_stress, phonemes))


class Symbols:
    """Names of symbols by their numbers; those that are not known are one symbol."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.ids = {name: i for i, name in enumerate(names, start=FIRST)}

    def __len__(self) -> int:
        return FIRST + len(self.ids)

    def learned(self, names: Iterable[str]) -> list[int]:
        return [self.ids.setdefault(name, len(self)) for name in names]

    def known(self, names: Iterable[str]) -> list[int]:
        return [self.ids.get(name, UNKNOWN) for name in names]


class WordModels:
    """N-grams of words: forward and backward of letters with labels, and of phonemes.

    symbols: Those of each of the three models.
    """

    def __init__(self, symbols: Sequence[Symbols], models: Sequence[NgramModel]) -> None:
        self.symbols = symbols
        self.models = models

    @classmethod
    def learn(cls, words: Iterable[Word], order: int, phoneme_order: int) -> WordModels:
        symbols = tuple(Symbols() for _ in MODELS)
        data: tuple[list[list[int]], ...] = tuple([] for _ in MODELS)
        for word in words:
            for own, names, sequences in zip(symbols, _names(*word), data, strict=True):
                sequences.append(own.learned(names))
        orders = (order, order, phoneme_order)
        models = [
            learn_ngrams(sequences, len(own), length)
            for own, sequences, length in zip(symbols, data, orders, strict=True)
        ]
        return cls(symbols, models)

    def features(self, words: Sequence[Candidates]) -> Floats:
        """What is known of all candidates of all words. shape: (n_candidates, n_features)"""
        spelled = _Spelled.of(words)
        by_tagger = np.array([log_p for word in words for log_p in word.log_p], float)
        by_models = [
            model.log_probabilities(framed)
            for model, framed in zip(self.models, spelled.framed(self.symbols), strict=True)
        ]
        one_stress = (spelled.main_stresses() == 1).astype(float)
        return np.stack([by_tagger, *by_models, one_stress], axis=1)

    def to_state(self) -> dict[str, Any]:
        return {
            name: {"symbols": list(symbols.ids), **model.to_state()}
            for name, symbols, model in zip(MODELS, self.symbols, self.models, strict=True)
        }

    @classmethod
    def from_state(cls, reader: StateReader) -> WordModels:
        symbols, models = [], []
        for name in MODELS:
            own = reader.nested(name)
            symbols.append(Symbols(own.strings("symbols", unique=True)))
            models.append(NgramModel.from_state(own, len(symbols[-1])))
        return cls(symbols, models)


@dataclass(frozen=True)
class _Spelled:
    """Letters with labels of all candidates end to end, as numbers of distinct pairs.

    A few hundred pairs make up millions of candidates: each is named once.
    """

    pairs: Sequence[tuple[str, str]]  # distinct letters with their labels
    places: Ints  # shape: (n_letters of all candidates,), of pairs
    lengths: Ints  # shape: (n_candidates,)

    @classmethod
    def of(cls, words: Sequence[Candidates]) -> _Spelled:
        ids: dict[tuple[str, str], int] = {}
        places = [
            ids.setdefault(pair, len(ids))
            for word in words
            for labels in word.labels
            for pair in zip(word.letters, labels, strict=True)
        ]
        lengths = [len(word.letters) for word in words for _ in word.labels]
        return cls(list(ids), np.array(places, np.int64), np.array(lengths, np.int64))

    def framed(self, symbols: Sequence[Symbols]) -> Iterator[Framed]:
        """What each of the models sees of all candidates."""
        named = [_names([letter], [label]) for letter, label in self.pairs]
        known = [
            [own.known(names[i]) for names in named] for i, own in enumerate(symbols)
        ]  # symbols of each pair, for each model
        forward, backward = (np.array(own, np.int64).reshape(-1) for own in known[:2])
        yield Framed.of_flat(forward[self.places], self.lengths)
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        starts = ends - np.repeat(self.lengths, self.lengths)
        yield Framed.of_flat(
            backward[self.places[starts + ends - 1 - np.arange(len(ends))]], self.lengths
        )
        yield Framed.of_flat(*self._phonemes(known[2]))

    def _phonemes(self, known: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
        """Symbols of phonemes end to end, and how many each candidate has."""
        numbers = np.array([len(own) for own in known], np.int64)
        flat = np.array([symbol for own in known for symbol in own], np.int64)
        each = numbers[self.places]
        within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        first = np.repeat((np.cumsum(numbers) - numbers)[self.places], each)
        return flat[first + within], self._sums(each)

    def main_stresses(self) -> Ints:
        """How many main stresses each candidate has."""
        stresses = [
            sum(phoneme.endswith(MAIN_STRESS) for phoneme in phonemes_of([label]))
            for _, label in self.pairs
        ]
        return self._sums(np.array(stresses, np.int64)[self.places])

    def _sums(self, values: Ints) -> Ints:
        """Sums over the letters of each candidate."""
        before = np.concatenate([[0], np.cumsum(values)])
        ends = np.cumsum(self.lengths)
        return np.asarray(before[ends] - before[ends - self.lengths])


def _names(letters: Sequence[str], labels: Sequence[str]) -> tuple[Sequence[str], ...]:
    """What each of the models sees of a word."""
    forward = [a + _BETWEEN + _plain(b) for a, b in zip(letters, labels, strict=True)]
    backward = [a + _BETWEEN + b for a, b in zip(letters, labels, strict=True)]
    return forward, backward[::-1], phonemes_of(labels)


@lru_cache(2**12)
def _plain(label: str) -> str:
    return JOINT.join(map(without_stress, label.split(JOINT)))


def rescored(
    words: Sequence[Candidates], features: Floats, weights: npt.ArrayLike
) -> list[list[Pronunciation]]:
    """The pronunciations of each word, the best first, then the most probable ones.

    Labellings of the same phonemes count together; probabilities are those among the candidates.
    The best one has the phonemes that are most probable whatever their stress, and of these the
    most probable stress: on held-out words it is right more often than the most probable one.
    """
    scores = features @ np.asarray(weights, float)
    found = []
    last = 0
    for word in words:
        first, last = last, last + len(word.labels)
        shares = np.exp(scores[first:last] - scores[first:last].max())
        shares /= shares.sum()
        merged: dict[tuple[str, ...], Pronunciation] = {}
        without: dict[tuple[str, ...], float] = {}  # probabilities of phonemes without stress
        for i in np.argsort(-shares, kind="stable").tolist():
            labels, share = word.labels[i], float(shares[i])
            phonemes = phonemes_of(labels)
            known = merged.get(phonemes, Pronunciation(phonemes, 0.0, labels))
            both = known.probability + share
            merged[phonemes] = Pronunciation(phonemes, both, known.labels)
            plain = plain_phonemes(phonemes)
            without[plain] = without.get(plain, 0.0) + share
        ordered = sorted(merged.values(), key=lambda one: -one.probability)
        likely = max(without, key=without.__getitem__)
        best = next(one for one in ordered if plain_phonemes(one.phonemes) == likely)
        found.append([best, *(one for one in ordered if one is not best)])
    return found
