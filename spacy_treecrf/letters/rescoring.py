"""Pronunciations of words, rescored: a tagger's n best labellings under models of whole words.

The tagger knows the letters around each letter and one label before it. Joint n-grams of letters
and labels know long pieces of words as they were learned (that is what Phonetisaurus is), those of
phonemes know what can be said, and a word has one main stress. The log-linear mixture of all is

    P(labels | word) ~ exp(sum_i weight_i * feature_i(word, labels)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.corpora.aligner import JOINT, SILENT
from spacy_treecrf.letters.ngram_learning import learn_ngrams
from spacy_treecrf.letters.ngram_model import FIRST, UNKNOWN, Floats, Framed, NgramModel
from spacy_treecrf.storage.state_reader import StateReader

# What a labelling is judged by: its log probability by the tagger, by n-grams of letters with
# labels, read forward and backward, by n-grams of phonemes, and whether it has one main stress.
FEATURES = ("tagger", "forward", "backward", "phonemes", "one_stress")
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
    """Models of whole words: n-grams of letters with labels in both directions, and of phonemes."""

    def __init__(
        self, pairs: Symbols, phonemes: Symbols, models: tuple[NgramModel, NgramModel, NgramModel]
    ) -> None:
        self.pairs = pairs
        self.phonemes = phonemes
        self.forward, self.backward, self.of_phonemes = models

    @classmethod
    def learn(cls, words: Iterable[Word], order: int, phoneme_order: int) -> WordModels:
        pairs, phonemes = Symbols(), Symbols()
        spelled, spoken = [], []
        for letters, labels in words:
            spelled.append(pairs.learned(_pairs(letters, labels)))
            spoken.append(phonemes.learned(phonemes_of(labels)))
        backward = [sequence[::-1] for sequence in spelled]
        models = (
            learn_ngrams(spelled, len(pairs), order),
            learn_ngrams(backward, len(pairs), order),
            learn_ngrams(spoken, len(phonemes), phoneme_order),
        )
        return cls(pairs, phonemes, models)

    def features(self, words: Sequence[Candidates]) -> Floats:
        """What is known of all candidates of all words. shape: (n_candidates, n_features)"""
        spelled, spoken, stressed = [], [], []
        for word in words:
            for labels in word.labels:
                spelled.append(self.pairs.known(_pairs(word.letters, labels)))
                phonemes = phonemes_of(labels)
                spoken.append(self.phonemes.known(phonemes))
                stressed.append(sum(p.endswith(MAIN_STRESS) for p in phonemes) == 1)
        by_tagger = np.array([log_p for word in words for log_p in word.log_p], float)
        forward, backward = Framed.of(spelled), Framed.of([s[::-1] for s in spelled])
        return np.stack(
            [
                by_tagger,
                self.forward.log_probabilities(forward),
                self.backward.log_probabilities(backward),
                self.of_phonemes.log_probabilities(Framed.of(spoken)),
                np.array(stressed, float),
            ],
            axis=1,
        )

    def to_state(self) -> dict[str, Any]:
        return {
            "pairs": list(self.pairs.ids),
            "phonemes": list(self.phonemes.ids),
            "forward": self.forward.to_state(),
            "backward": self.backward.to_state(),
            "of_phonemes": self.of_phonemes.to_state(),
        }

    @classmethod
    def from_state(cls, reader: StateReader) -> WordModels:
        pairs, phonemes = (
            Symbols(reader.strings(name, unique=True)) for name in ("pairs", "phonemes")
        )
        forward, backward, of_phonemes = (
            NgramModel.from_state(reader.nested(name), len(symbols))
            for name, symbols in (
                ("forward", pairs),
                ("backward", pairs),
                ("of_phonemes", phonemes),
            )
        )
        return cls(pairs, phonemes, (forward, backward, of_phonemes))


def _pairs(letters: Iterable[str], labels: Iterable[str]) -> list[str]:
    return [f"{a}{_BETWEEN}{b}" for a, b in zip(letters, labels, strict=True)]


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
