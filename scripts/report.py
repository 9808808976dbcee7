"""The report that `spacy project run all` ends with: scores, the page, the wheel, how to try it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import srsly
import typer
from spacy.tokens import Doc

from spacy_treecrf.cli.evaluate import NAMES, NAMES_OF_WORDS
from spacy_treecrf.cli.shared.common import reports_errors
from spacy_treecrf.cli.shared.tables import table, with_interval
from spacy_treecrf.evaluation.bootstrap import Interval
from spacy_treecrf.letters.word_figures import pronouncer_of

LETTERS_AND_WORDS = {"token_accuracy": "letters right %", "sequence_accuracy": "words right %"}
# Names of figures, for tasks whose tokens and sequences have a better name.
OTHER_NAMES = {
    "letters": {"token_accuracy": "phoneme accuracy %", "sequence_accuracy": "word accuracy %"},
    "nettalk": LETTERS_AND_WORDS,
    "stress": LETTERS_AND_WORDS,
    "hyphenate": LETTERS_AND_WORDS,
    "ocr": LETTERS_AND_WORDS,
}
WORDS = ["photography", "photograph"]
NEWS = ["Mary Shaw of the Bank of England opened its new office in Leeds on Monday ."]
# Examples to show a model on; the pictures of ocr cannot be typed.
SAMPLES = {
    "letters": WORDS,
    "nettalk": WORDS,
    "stress": WORDS,
    "hyphenate": WORDS,
    "chunk": NEWS,
    "tagger": NEWS,
    "ner": NEWS,
    "protein": ["VLSPADKTNVKAAWGKVGAHAGEYGA"],
}


@reports_errors
def report(
    task: Annotated[str, typer.Argument(help="Name of a config in configs/.")],
    version: Annotated[str, typer.Option(help="Of the packaged model.")],
) -> None:
    """Print the scores of a task, what its model does, and how to use the packaged model."""
    metrics = srsly.read_json(Path("metrics", f"{task}.json"))
    typer.echo("\n" + scores(task, metrics))
    if "whole_words" in metrics:
        typer.echo("\n" + scores("whole words", of_whole_words(metrics)))
    nlp = spacy.load(Path("training", task, "model-best"))
    kind = nlp.config["components"]["treecrf"]["task"]
    samples = SAMPLES.get(task, [])
    for doc in nlp.pipe(samples):
        typer.echo("\n" + "\n".join(labelled(doc, kind)))
        if pronouncer_of(nlp):
            phonemes, probability = doc._.pronunciations[0]
            typer.echo(f"{phonemes}  {probability:.2f}")
    typer.echo(f"\nA page with all of it, and with the errors, is metrics/{task}.html.")
    (wheel,) = Path("packages", task).glob(f"*-{version}/dist/*.whl")
    typer.echo(f"The packaged model is {wheel}. Try it:\n")
    for line in lines_to_try(wheel, kind, samples):
        typer.echo(f"  {line}")


def of_whole_words(metrics: dict[str, Any]) -> dict[str, Any]:
    """The figures of whole pronunciations among all of them, in the same form."""
    words = metrics["whole_words"]
    return {**metrics, "sequences": words["words"], "figures": words["figures"]}


def scores(task: str, metrics: dict[str, Any]) -> str:
    """The figures of `spacy-treecrf evaluate`, as a table."""
    names = NAMES | OTHER_NAMES.get(task, {}) | NAMES_OF_WORDS
    rows = [
        (names[name], *with_interval(Interval(**figure), name != "nll_per_token"))
        for name, figure in metrics["figures"].items()
    ]
    unseen = f"{metrics['sequences']:,} unseen sequences"
    return table([unseen, task, f"{metrics['confidence']:.0%} interval"], rows)


def labelled(doc: Doc, kind: str) -> Iterator[str]:
    """A line for each span; or lines of tokens, of their labels and of the probabilities.

    kind: The task of the pipe, as its config names it.
    """
    where, _, name = kind.partition(":")
    if where in ("ents", "spans"):
        yield doc.text
        for span in doc.ents if where == "ents" else doc.spans[name]:
            yield f"  {span.text}  {span.label_}  {span._.treecrf_prob:.3f}"
        return
    columns = []
    for token in doc:
        label = token.tag_ if where == "tag" else token._.get(name)
        columns.append([token.text, label, f"{token._.treecrf_prob:.2f}"])
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield " ".join(padded).rstrip()


def lines_to_try(wheel: Path, kind: str, samples: list[str]) -> list[str]:
    package = wheel.name.partition("-")[0]
    where, _, name = kind.partition(":")
    values, items = {
        "ents": ("x.label_", ".ents"),
        "spans": ("x.label_", f'.spans["{name}"]'),
        "tag": ("x.tag_", ""),
        "ext": (f"x._.{name}", ""),
    }[where]
    example = 'nlp.get_pipe("treecrf").labels'
    if samples:
        example = f'[(x.text, {values}, x._.treecrf_prob) for x in nlp("{samples[0]}"){items}]'
    return [
        f"pip install {wheel}",
        f"""python -i -c 'import spacy; nlp = spacy.load("{package}")'""",
        example,
    ]


if __name__ == "__main__":
    typer.run(report)
