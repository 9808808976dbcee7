"""Pronunciations of words, rescored: a tagger's n best labellings under models of whole words.

The tagger knows the letters around each letter and one label before it. Joint n-grams of letters
and labels know long pieces of words as they were learned (that is what Phonetisaurus is), those of
phonemes know what can be said, and a word has one main stress. The log-linear mixture of all is

    P(labels | word) ~ exp(sum_i weight_i * feature_i(word, labels)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.corpora.aligner import JOINT, SILENT, without_stress
from spacy_treecrf.letters.ngram_learning import learn_ngrams
from spacy_treecrf.letters.ngram_model import FIRST, UNKNOWN, Floats, Framed, NgramModel
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
        data: tuple[list[list[int]], ...] = tuple([] for _ in MODELS)
        stressed = []
        for word in words:
            for labels in word.labels:
                names = _names(word.letters, labels)
                for own, named, sequences in zip(self.symbols, names, data, strict=True):
                    sequences.append(own.known(named))
                main = sum(phoneme.endswith(MAIN_STRESS) for phoneme in names[-1])
                stressed.append(float(main == 1))
        by_tagger = [log_p for word in words for log_p in word.log_p]
        by_models = [
            model.log_probabilities(Framed.of(sequences))
            for model, sequences in zip(self.models, data, strict=True)
        ]
        return np.stack([np.array(by_tagger, float), *by_models, np.array(stressed)], axis=1)

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
    """The pronunciations of each word, the most probable first.

    Labellings of the same phonemes count together; probabilities are those among the candidates.
    """
    scores = features @ np.asarray(weights, float)
    found = []
    last = 0
    for word in words:
        first, last = last, last + len(word.labels)
        shares = np.exp(scores[first:last] - scores[first:last].max())
        shares /= shares.sum()
        best: dict[tuple[str, ...], Pronunciation] = {}
        for i in np.argsort(-shares, kind="stable").tolist():
            labels, share = word.labels[i], float(shares[i])
            phonemes = phonemes_of(labels)
            known = best.get(phonemes)
            if known is None:
                best[phonemes] = Pronunciation(phonemes, share, labels)
            else:
                both = known.probability + share
                best[phonemes] = Pronunciation(phonemes, both, known.labels)
        found.append(sorted(best.values(), key=lambda p: -p.probability))
    return found
