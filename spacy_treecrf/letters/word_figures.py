"""Figures of whole pronunciations, for pipelines that end in a pronouncer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.evaluation.bootstrap import Interval, Statistic, Sums, intervals
from spacy_treecrf.letters.pronouncer import Pronouncer, by_letters, edits
from spacy_treecrf.letters.rescoring import plain_phonemes

# What each word adds to the sums.
WORD, RIGHT, RIGHT_WITHOUT_STRESS, EDITS, PHONEMES = range(5)


class WordFigures(NamedTuple):
    """How many words of a data set are pronounced well."""

    words: int
    figures: dict[str, Interval]  # by name: words_right, words_right_without_stress, phoneme_errors

    def to_json(self) -> dict[str, Any]:
        figures = {name: asdict(interval) for name, interval in self.figures.items()}
        return {"words": self.words, "figures": figures}


def pronouncer_of(nlp: Language) -> Pronouncer | None:
    """The pronouncer of a pipeline, if it has one."""
    return next((pipe for _, pipe in nlp.pipeline if isinstance(pipe, Pronouncer)), None)


def word_figures(nlp: Language, examples: Iterable[Example], **options: Any) -> WordFigures | None:
    """The figures of the annotated words; None if the pipeline has no pronouncer.

    options: Those of `bootstrap.intervals`.
    """
    pipe = pronouncer_of(nlp)
    if pipe is None:
        return None
    rows = list(_rows(pipe, examples))
    if not rows:
        return None
    statistics = {
        "words_right": _share(RIGHT, WORD),
        "words_right_without_stress": _share(RIGHT_WITHOUT_STRESS, WORD),
        "phoneme_errors": _share(EDITS, PHONEMES),
    }
    return WordFigures(len(rows), intervals(np.array(rows, np.float64), statistics, **options))


def _rows(pipe: Pronouncer, examples: Iterable[Example]) -> Iterator[tuple[float, ...]]:
    """What each annotated word adds to the sums.

    Where the doc to be predicted has other words, as a text may, nothing is said of it.
    """
    for group in by_letters(examples):
        docs = [example.predicted for example in group]
        places, words = pipe.find_candidates(docs)
        judged = iter(pipe.judged(words))
        for example, doc, own in zip(group, docs, places, strict=True):
            said = {_edges(doc, place): next(judged)[0].phonemes for place in own}
            annotated = list(pipe.words(example.reference))
            wanted = pipe.gold_phonemes([example.reference], [annotated])
            for place, gold in zip(annotated, wanted, strict=True):
                if gold is not None:
                    yield _row(gold, said.get(_edges(example.reference, place)))


def _edges(doc: Doc, place: tuple[int, int]) -> tuple[int, int]:
    """Where a word begins and ends in the text."""
    word = doc[slice(*place)]
    return word.start_char, word.end_char


def _row(gold: tuple[str, ...], said: tuple[str, ...] | None) -> tuple[float, ...]:
    if said is None:
        return 1, False, False, len(gold), len(gold)
    without = plain_phonemes(gold) == plain_phonemes(said)
    return 1, gold == said, without, edits(gold, said), len(gold)


def _share(part: int, whole: int) -> Statistic:
    def statistic(sums: Sums) -> float:
        return float(sums[part] / max(sums[whole], 1))  # silent words alone have no phonemes

    return statistic
