"""Figures of whole pronunciations, for pipelines that end in a pronouncer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_treecrf.corpora.aligner import without_stress
from spacy_treecrf.evaluation.bootstrap import Interval, Statistic, Sums, intervals
from spacy_treecrf.letters.pronouncer import Pronouncer, edits

BATCH = 256  # docs
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


def word_figures(nlp: Language, data: Path, **options: Any) -> WordFigures | None:
    """The figures of the words of a .spacy file; None if the pipeline has no pronouncer.

    options: Those of `bootstrap.intervals`.
    """
    pipe = pronouncer_of(nlp)
    if pipe is None:
        return None
    rows = list(_rows(pipe, nlp, data))
    if not rows:
        return None
    statistics = {
        "words_right": _share(RIGHT, WORD),
        "words_right_without_stress": _share(RIGHT_WITHOUT_STRESS, WORD),
        "phoneme_errors": _share(EDITS, PHONEMES),
    }
    return WordFigures(len(rows), intervals(np.array(rows, np.float64), statistics, **options))


def _rows(pipe: Pronouncer, nlp: Language, data: Path) -> Iterator[tuple[float, ...]]:
    """What each annotated word adds to the sums."""
    docs = DocBin().from_disk(data).get_docs(nlp.vocab)
    while batch := list(islice(docs, BATCH)):
        places, words = pipe.find_candidates(batch)
        wanted = pipe.gold_phonemes(batch, places)
        for gold, (best, *_) in zip(wanted, pipe.judged(words), strict=True):
            if gold is None:
                continue
            plain = [list(map(without_stress, sounds)) for sounds in (gold, best.phonemes)]
            errors = edits(gold, best.phonemes)
            yield 1, gold == best.phonemes, plain[0] == plain[1], errors, len(gold)


def _share(part: int, whole: int) -> Statistic:
    def statistic(sums: Sums) -> float:
        return float(sums[part] / max(sums[whole], 1))  # silent words alone have no phonemes

    return statistic
