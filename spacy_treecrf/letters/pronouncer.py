"""A pipe that pronounces words, behind one that labels their letters with phonemes."""

# No `from __future__ import annotations` here: spaCy checks [initialize] against the types below.
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.training import Example, validate_get_examples

from spacy_treecrf.letters.rescoring import (
    FEATURES,
    Candidates,
    Pronunciation,
    Word,
    WordModels,
    phonemes_of,
    plain_phonemes,
    rescored,
)
from spacy_treecrf.pipeline.annotation.combining import best_combinations
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.pipeline.sequencing import starts_of
from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader

PRONUNCIATIONS = "pronunciations"  # the attribute of docs and of words
FILE = "word_models"
MOST_CANDIDATES = 1000
# Candidates take memory: a hundred of each word, whose labels are lists.
LETTERS_AT_ONCE = 4096
# Those that make words of the dev part of CMUdict most probable, after training on all its others.
WEIGHTS = {
    "tagger": 0.46,
    "forward": 0.21,
    "backward": 0.26,
    "phonemes": 0.05,
    "one_stress": 2.9,
}

Item = TypeVar("Item", Doc, Example)
# Phonemes, with blanks between, and their probability. Stored docs, and those of other processes,
# have lists for tuples: a list is the same before and after.
Said = list[str | float]


# Many parameters: those of a block in a config.
@Language.factory(
    "treecrf_pronouncer",
    assigns=[f"doc._.{PRONUNCIATIONS}", f"span._.{PRONUNCIATIONS}"],
    default_config={
        "tagger": "treecrf",
        "attribute": "phoneme",
        "candidates": 100,
        "keep": 5,
        "order": 8,
        "phoneme_order": 6,
        "weights": WEIGHTS,
    },
    default_score_weights={
        "pronunciation_acc": 1.0,
        "pronunciation_acc_without_stress": None,
        "pronunciation_phoneme_error": None,
    },
)
def make_pronouncer(
    nlp: Language,
    name: str,
    tagger: str,
    attribute: str,
    candidates: int,
    keep: int,
    order: int,
    phoneme_order: int,
    weights: dict[str, float],
) -> "Pronouncer":
    """Make a pipe that writes doc._.pronunciations.

    tagger: The name of the pipe that labels letters; its n best labellings are judged anew.
    attribute: The attribute of letters that it labels, token._.<attribute>, which gets the labels
    of the best pronunciation.
    candidates: How many labellings of each word are judged. keep: How many pronunciations are kept.
    order: The length of the n-grams of letters with labels. phoneme_order: That of phonemes.
    weights: How much each judgement counts: "tagger", "forward" (n-grams of letters with labels,
    without stress), "backward" (the same with stress, from the end of the word), "phonemes"
    (n-grams of them), "one_stress" (whether there is one main stress).
    """
    for setting, value, high in (
        ("candidates", candidates, MOST_CANDIDATES),
        ("keep", keep, MOST_CANDIDATES),
        ("order", order, 12),
        ("phoneme_order", phoneme_order, 12),
    ):
        if not 1 <= value <= high:
            raise ValueError(
                f"treecrf: setting {setting!r} of {name} is {value}; use a number from 1 to {high}"
            )
    if set(weights) != set(FEATURES) or not all(map(math.isfinite, weights.values())):
        raise ValueError(
            f"treecrf: setting 'weights' of {name} is {weights}; give a number for each of "
            f"{', '.join(FEATURES)}"
        )
    return Pronouncer(
        nlp, name, tagger, attribute, candidates, keep, (order, phoneme_order), weights
    )


class Pronouncer:
    """Finds the most probable pronunciations of words, in doc._.pronunciations.

    They are lists of two: phonemes, with blanks between, and a probability. Those of each word of
    a text are in span._.pronunciations of its sentences, which are the words.
    """

    # Many parameters: those of the factory.
    def __init__(
        self,
        nlp: Language,
        name: str,
        tagger: str,
        attribute: str,
        candidates: int,
        keep: int,
        orders: tuple[int, int],
        weights: dict[str, float],
    ) -> None:
        self.nlp = nlp
        self.name = name
        self.tagger = tagger
        self.attribute = attribute
        self.candidates = candidates
        self.keep = keep
        self.orders = orders
        self.weights = {feature: float(weights[feature]) for feature in FEATURES}
        self.models: WordModels | None = None
        for owner in (Doc, Span):
            if not owner.has_extension(PRONUNCIATIONS):
                owner.set_extension(PRONUNCIATIONS, default=None)
        if not Token.has_extension(attribute):
            Token.set_extension(attribute, default=None)

    # -- training

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Learn n-grams of words; the examples should be the whole training data."""
        validate_get_examples(get_examples, "Pronouncer.initialize")
        words = self._gold(example.reference for example in get_examples())
        self.models = WordModels.learn(words, *self.orders)

    def _gold(self, docs: Iterable[Doc]) -> Iterator[Word]:
        """Letters and labels of all words that are annotated throughout."""
        for doc in docs:
            labels = [token._.get(self.attribute) for token in doc]
            for first, last in self.words(doc):
                if _annotated(labels[first:last]):
                    yield _letters(doc, first, last), labels[first:last]

    def words(self, doc: Doc) -> Iterator[tuple[int, int]]:
        """Where words begin and end: the sequences of the tagger that have letters or digits."""
        for first, last in self._sequences(doc):
            if any(token.text.isalnum() for token in doc[first:last]):
                yield first, last

    def _sequences(self, doc: Doc) -> Iterator[tuple[int, int]]:
        return pairwise([*starts_of(doc, self._tagger().sequence).tolist(), len(doc)])

    def _tagger(self) -> TreeCRF:
        if self.tagger not in self.nlp.pipe_names:
            raise ValueError(
                f"treecrf: {self.name} judges what the pipe {self.tagger!r} says, which is not in "
                f"the pipeline ({', '.join(self.nlp.pipe_names)}); set its 'tagger'"
            )
        found = self.nlp.get_pipe(self.tagger)
        if not isinstance(found, TreeCRF):
            raise ValueError(
                f"treecrf: {self.name} judges labellings of a treecrf pipe, and {self.tagger!r} is "
                "another; set its 'tagger'"
            )
        return found

    # -- prediction

    def __call__(self, doc: Doc) -> Doc:
        self.pronounce([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        stream = iter(stream)
        while docs := list(islice(stream, batch_size)):
            self.pronounce(docs)
            yield from docs

    def pronounce(self, docs: Sequence[Doc]) -> None:
        """Set the pronunciations of docs, of their words, and the labels of their letters."""
        for group in by_letters(docs):
            self._pronounce(group)

    def _pronounce(self, docs: Sequence[Doc]) -> None:
        places, words = self.find_candidates(docs)
        found = iter(self.judged(words))
        for doc, own in zip(docs, places, strict=True):
            choices = []
            for first, last in self._sequences(doc):
                doc[first:last]._.set(PRONUNCIATIONS, [])  # blanks and punctuation have none
            for first, last in own:
                best = next(found)
                choices.append(best)
                for token, label in zip(doc[first:last], best[0].labels, strict=True):
                    token._.set(self.attribute, label)
                doc[first:last]._.set(PRONUNCIATIONS, _listed(best[: self.keep]))
            doc._.set(PRONUNCIATIONS, _combined(choices, self.keep))

    def find_candidates(
        self, docs: Sequence[Doc]
    ) -> tuple[list[list[tuple[int, int]]], list[Candidates]]:
        """Where the words of each doc are, and the candidates of all of them in a row."""
        tagger = self._tagger()
        names = tagger.sequence_labels
        places, words = [], []
        best = iter(tagger.nbest_of_sequences(docs, self.candidates))
        # Weights are for the tagger as it was trained: calibration of it changes no judgement.
        temperature = tagger.shim.trained.temperature
        for doc in docs:
            own = list(self.words(doc))
            places.append(own)
            by_start = {first: next(best) for first in starts_of(doc, tagger.sequence).tolist()}
            for first, last in own:
                paths, log_p = by_start[first]
                labels = [[names[i] for i in path] for path in paths.tolist()]
                scores = (log_p * temperature).tolist()
                words.append(Candidates(_letters(doc, first, last), labels, scores))
        return places, words

    def gold_phonemes(
        self, docs: Sequence[Doc], places: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[str, ...] | None]:
        """The annotated phonemes of all words; None of a word with a letter without annotation.

        Words whose letters are all silent have none: ().
        """
        found: list[tuple[str, ...] | None] = []
        for doc, own in zip(docs, places, strict=True):
            labels = [token._.get(self.attribute) for token in doc]
            spoken = (labels[first:last] for first, last in own)
            found += [phonemes_of(word) if _annotated(word) else None for word in spoken]
        return found

    def features(self, words: Sequence[Candidates]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What is known of all candidates. shape: (n_candidates, n_features)"""
        if self.models is None:
            raise ValueError(
                f"treecrf: {self.name} has learned no words; train the pipeline, or load it"
            )
        return self.models.features(words)

    def judged(self, words: Sequence[Candidates]) -> list[list[Pronunciation]]:
        """The pronunciations of words, the best first."""
        if not words:
            return []
        return rescored(words, self.features(words), [self.weights[name] for name in FEATURES])

    # -- scoring

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Shares of words whose phonemes are right, with stress and without, and of wrong phonemes.

        The last are insertions, deletions and replacements for each phoneme of the gold words.
        """
        right, right_without, n_words, errors, n_phonemes = 0, 0, 0, 0, 0
        for example in examples:
            labels = [token._.get(self.attribute) for token in example.predicted]
            gold = [token._.get(self.attribute) for token in example.reference]
            for first, last in self.words(example.predicted):
                if not _annotated(gold[first:last]):
                    continue
                wanted, found = phonemes_of(gold[first:last]), phonemes_of(labels[first:last])
                n_words += 1
                right += wanted == found
                right_without += plain_phonemes(wanted) == plain_phonemes(found)
                errors += edits(wanted, found)
                n_phonemes += len(wanted)
        if not n_words:
            return {}
        return {
            "pronunciation_acc": right / n_words,
            "pronunciation_acc_without_stress": right_without / n_words,
            "pronunciation_phoneme_error": errors / max(n_phonemes, 1),
        }

    # -- storage

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        return container.dump({} if self.models is None else self.models.to_state(), small=True)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "Pronouncer":
        """Take over what `to_bytes` made; a ValueError names the field that is wrong."""
        source = f"the bytes of the pipe {self.name!r}"
        self._take(container.parse(data, source), source)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        folder = Path(path)
        folder.mkdir(exist_ok=True)
        container.write(folder / FILE, self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Pronouncer":
        """Take over what `to_disk` wrote; a ValueError names the file and field that is wrong."""
        file = Path(path) / FILE
        self._take(container.read(file), str(file))
        return self

    def _take(self, state: dict[str, Any], source: str) -> None:
        if not state:  # it was stored before it had learned
            self.models = None
            return
        reader = StateReader(state, source)
        models = WordModels.from_state(reader)
        reader.done()
        self.models = models


def by_letters(items: Iterable[Item], n_letters: int = LETTERS_AT_ONCE) -> Iterator[list[Item]]:
    """Docs or examples in their order, in groups that end where they have so many letters."""
    group: list[Item] = []
    for item in items:
        group.append(item)
        if sum(map(len, group)) >= n_letters:
            yield group
            group = []
    if group:
        yield group


def _letters(doc: Doc, first: int, last: int) -> list[str]:
    return [token.text.lower() for token in doc[first:last]]


def _annotated(labels: Iterable[Any]) -> bool:
    """Whether each letter of a word has a label."""
    return all(isinstance(label, str) and label for label in labels)


def _listed(found: Sequence[Pronunciation]) -> list[Said]:
    return [[" ".join(one.phonemes), one.probability] for one in found]


def _combined(choices: Sequence[Sequence[Pronunciation]], n: int) -> list[Said]:
    """The pronunciations of a text: of one word its own; else the best of each word, then others.

    The others are the most probable ones of all words together.
    """
    if len(choices) == 1:
        return _listed(choices[0][:n])
    if not choices:
        return []
    logs = [
        [(list(one.phonemes), math.log(max(one.probability, 1e-300))) for one in by_probability]
        for by_probability in (sorted(own, key=lambda one: -one.probability) for own in choices)
    ]
    best = " ".join(p for own in choices for p in own[0].phonemes)
    probability = math.prod(own[0].probability for own in choices)
    likely: list[Said] = [[" ".join(phonemes), p] for phonemes, p in best_combinations(logs, n)]
    return [[best, probability], *(one for one in likely if one[0] != best)][:n]


def edits(wanted: Sequence[str], found: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements from one sequence to the other."""
    row = list(range(len(found) + 1))
    for i, a in enumerate(wanted, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(found, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
