"""What each part of a pronouncer brings on words that its pipeline has not learned.

A table of words right with stress and without: by numbers of candidates, by how the best
pronunciation is chosen, and without each judgement in turn. The pipeline is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from spacy.tokens import DocBin

from scripts.pronouncer_weights import pronouncer_of
from spacy_treecrf.cli.shared.common import reports_errors
from spacy_treecrf.cli.shared.tables import table
from spacy_treecrf.letters.ngram_model import Floats
from spacy_treecrf.letters.rescoring import (
    FEATURES,
    Candidates,
    Pronunciation,
    plain_phonemes,
    rescored,
)

FEWER = (1, 10, 30, 60)  # candidates
HEAD = ["what", "words right, %", "without stress, %"]

Gold = Sequence[tuple[str, ...] | None]


@reports_errors
def main(
    model: Annotated[str, typer.Argument(help="Folder or package of a trained pipeline.")],
    data: Annotated[Path, typer.Argument(help="Annotated words as a .spacy file.")],
    every: Annotated[int, typer.Option(min=1, help="Only one of so many words.")] = 1,
) -> None:
    """Print what candidates, judgements and the choice of the best bring."""
    nlp = spacy.load(model)
    pronouncer = pronouncer_of(nlp, model)
    docs = list(DocBin().from_disk(data).get_docs(nlp.vocab))[::every]
    places, words = pronouncer.find_candidates(docs)
    gold = pronouncer.gold_phonemes(docs, places)
    features = pronouncer.features(words)
    weights = np.array([pronouncer.weights[name] for name in FEATURES])
    most = f"{pronouncer.candidates} candidates"
    found = rescored(words, features, weights)
    rows = [[most, *shares(found, gold)]]
    by_probability = [sorted(own, key=lambda one: -one.probability) for own in found]
    rows.append(["the most probable with stress as the best", *shares(by_probability, gold)])
    for n in (n for n in FEWER if n < pronouncer.candidates):
        found = rescored(*fewer(words, features, n), weights)
        rows.append([f"{n} candidates", *shares(found, gold)])
    for i, name in enumerate(FEATURES):
        found = rescored(words, features, np.where(np.arange(len(FEATURES)) == i, 0.0, weights))
        rows.append([f"{most}, without {name}", *shares(found, gold)])
    typer.echo(f"{sum(own is not None for own in gold)} annotated words")
    typer.echo(table(HEAD, rows))


def fewer(words: Sequence[Candidates], features: Floats, n: int) -> tuple[list[Candidates], Floats]:
    """The n best candidates of each word by the tagger, with their features."""
    rank = np.concatenate([np.arange(len(word.labels)) for word in words])
    cut = [Candidates(word.letters, word.labels[:n], word.log_p[:n]) for word in words]
    return cut, features[rank < n]


def shares(found: Sequence[Sequence[Pronunciation]], gold: Gold) -> list[str]:
    """Percent of annotated words whose first pronunciation is right, with stress and without."""
    every = zip(found, gold, strict=True)
    pairs = [(own[0].phonemes, wanted) for own, wanted in every if wanted is not None]
    right = np.mean([said == wanted for said, wanted in pairs])
    without = np.mean([plain_phonemes(said) == plain_phonemes(wanted) for said, wanted in pairs])
    return [f"{100 * right:.2f}", f"{100 * without:.2f}"]


if __name__ == "__main__":
    typer.run(main)
