"""The command `pronounce`: how words are said, from a pipeline with a pronouncer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import output_text, refuse_existing, reports_errors
from spacy_treecrf.cli.shared.options import Encoding, Force

if TYPE_CHECKING:
    from spacy.language import Language

EXAMPLES = """\b
Examples:
  spacy-treecrf pronounce training/letters/model-best photograph photography
  spacy-treecrf pronounce en_letters words.txt --output said.tsv
  echo 'Read it aloud' | spacy-treecrf pronounce en_letters -
"""
HEAD = ["word", "pronunciation", "probability"]

Row = tuple[str, str, float]


# Many parameters: typer makes an option of each.
@reports_errors
def pronounce(
    model: Annotated[str, typer.Argument(help="spaCy pipeline folder or package.")],
    words: Annotated[
        list[str], typer.Argument(help="Words, or files of text; - is the standard input.")
    ],
    nbest: Annotated[int, typer.Option(min=1, max=100, help="Pronunciations of each word.")] = 3,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File of tab-separated lines.")
    ] = None,
    force: Force = False,
    encoding: Encoding = "utf-8",
) -> None:
    """Write the most probable pronunciations of words with their probabilities.

    Each argument that is the path of a file is read, and any other is taken for words, also a path
    where no file is.
    """
    from spacy_treecrf.cli.shared.tables import table

    if output is not None:
        refuse_existing(output, force, Path(model), *map(Path, words))
    rows = _rows(_pipeline(model, nbest), _texts(words, encoding), nbest)
    if output is None:
        typer.echo(table(HEAD, [[word, said, f"{p:.3f}"] for word, said, p in rows]))
        return
    with output_text(output) as file:
        file.writelines(f"{word}\t{said}\t{p:.6f}\n" for word, said, p in rows)


def _pipeline(model: str, nbest: int) -> Language:
    import spacy

    from spacy_treecrf.letters.pronouncer import Pronouncer

    try:
        nlp = spacy.load(model)
    except OSError as error:
        raise ValueError(f"treecrf: cannot load {model!r}: {error}; check the path") from error
    pronouncers = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, Pronouncer)]
    if not pronouncers:
        raise ValueError(
            f"treecrf: {model} has no pipe treecrf_pronouncer; train one by configs/letters.cfg"
        )
    for pronouncer in pronouncers:
        pronouncer.keep = max(pronouncer.keep, nbest)
    return nlp


def _texts(words: list[str], encoding: str) -> list[str]:
    """The words, with the lines of a file in place of its path."""
    from spacy_treecrf.columnar.files import STDIN, read_text_lines

    texts: list[str] = []
    for word in words:
        # Not by Path, which raises an error for words that are too long for a path.
        is_file = os.path.exists(word) and not os.path.isdir(word)
        texts += read_text_lines(word, encoding) if word == STDIN or is_file else [word]
    return texts


def _rows(nlp: Language, texts: Iterable[str], nbest: int) -> Iterator[Row]:
    for doc in nlp.pipe(text.strip() for text in texts):
        for word in doc.sents if len(doc) else ():
            for said, probability in (word._.pronunciations or [])[:nbest]:
                yield word.text, said, probability
