"""Learn the weights of a pronouncer from words that its pipeline has not learned, as in dev.spacy.

They are printed as a block for the config; the pipeline is not changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_treecrf.cli.shared.common import reports_errors
from spacy_treecrf.letters.pronouncer import Pronouncer
from spacy_treecrf.letters.rescoring import FEATURES
from spacy_treecrf.letters.weight_learning import learn_from_docs

RIDGE = 1e-4


@reports_errors
def main(
    model: Annotated[str, typer.Argument(help="Folder or package of a trained pipeline.")],
    data: Annotated[Path, typer.Argument(help="Annotated words as a .spacy file.")],
    limit: Annotated[int, typer.Option(help="So many words; 0: all.")] = 0,
) -> None:
    """Print the weights that make the words' pronunciations most probable."""
    nlp = spacy.load(model)
    pronouncer = pronouncer_of(nlp, model)
    docs = list(DocBin().from_disk(data).get_docs(nlp.vocab))[: limit or None]
    weights, likelihood = learn_from_docs(pronouncer, docs, RIDGE)
    print(f"# log-likelihood per word {likelihood:.4f}")
    print(
        "\n".join(f"{name} = {weight:.2f}" for name, weight in zip(FEATURES, weights, strict=True))
    )


def pronouncer_of(nlp: Language, model: str) -> Pronouncer:
    """The pronouncer of a pipeline that was loaded from `model`."""
    found = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, Pronouncer)]
    if not found:
        raise ValueError(f"treecrf: {model} has no pipe treecrf_pronouncer; add one and train it")
    return found[0]


if __name__ == "__main__":
    typer.run(main)
