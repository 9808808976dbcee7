"""Scores of whole pronunciations, for pipelines that end in a pronouncer."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_treecrf.corpora.aligner import without_stress
from spacy_treecrf.evaluation.bootstrap import CONFIDENCE, Sums, intervals
from spacy_treecrf.letters.pronouncer import Pronouncer, edits

BATCH = 256  # docs
# What each word adds to the sums.
WORD, RIGHT, RIGHT_WITHOUT_STRESS, EDITS, PHONEMES = range(5)
NAMES = {
    "words_right": "words right %",
    "words_right_without_stress": "words right, without stress %",
    "phoneme_errors": "phoneme errors %",
}


def pronouncer_of(nlp: Language) -> Pronouncer | None:
    """The pronouncer of a pipeline, if it has one."""
    return next((pipe for _, pipe in nlp.pipeline if isinstance(pipe, Pronouncer)), None)


def pronunciation_scores(nlp: Language, data: Path) -> dict[str, Any]:
    """Shares of words and phonemes of a .spacy file, as `spacy-treecrf evaluate` writes scores."""
    pipe = pronouncer_of(nlp)
    assert pipe is not None
    rows = []
    docs = DocBin().from_disk(data).get_docs(nlp.vocab)
    while batch := list(islice(docs, BATCH)):
        places, words = pipe.find_candidates(batch)
        wanted = pipe.gold_phonemes(batch, places)
        for gold, (best, *_) in zip(wanted, pipe.judged(words), strict=True):
            plain = [list(map(without_stress, sounds)) for sounds in (gold, best.phonemes)]
            errors = edits(gold, best.phonemes)
            rows.append([1, gold == best.phonemes, plain[0] == plain[1], errors, len(gold)])
    table = np.array(rows, np.float64).reshape(-1, 5)

    def share(part: int, whole: int) -> Any:
        def statistic(sums: Sums) -> float:
            return float(sums[part] / sums[whole])

        return statistic

    figures = intervals(
        table,
        {
            "words_right": share(RIGHT, WORD),
            "words_right_without_stress": share(RIGHT_WITHOUT_STRESS, WORD),
            "phoneme_errors": share(EDITS, PHONEMES),
        },
    )
    return {
        "sequences": len(table),
        "confidence": CONFIDENCE,
        "figures": {name: asdict(figure) for name, figure in figures.items()},
    }
