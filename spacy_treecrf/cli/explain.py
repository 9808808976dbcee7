"""The command `explain`: why texts got their labels, as a page or in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import (
    model_input,
    output_text,
    progress,
    refuse_existing,
    reports_errors,
    say,
)
from spacy_treecrf.cli.shared.options import Encoding, Threads

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.tagger import Chunk, Tagger
    from spacy_treecrf.explain.explanation import SequenceExplanation

EXAMPLES = """\b
Examples:
  spacy-treecrf explain training/ner/model-best "Mary Shaw went to Leeds"
  spacy-treecrf explain training/ner/model-best "Mary Shaw went to Leeds" -o page.html
  spacy-treecrf explain training/ner/model-best texts.txt -o page.html
  spacy-treecrf explain training/ner/model-best dev.spacy -o page.html --limit 100
  spacy-treecrf explain model.treecrf test.conll -o page.html
"""
# What looks like the name of a file; all else that is no file is a text, as 24/7.
SUFFIXES_OF_FILES = (
    ".txt",
    ".spacy",
    ".conll",
    ".conllu",
    ".bio",
    ".iob",
    ".tsv",
    ".csv",
    ".jsonl",
)


# Many parameters: typer makes an option of each.
@reports_errors
def explain(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    source: Annotated[
        str,
        typer.Argument(
            help="A text; a .txt file with a text in each line; a .spacy file; or a column file."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page: an .html file. Without it: a table."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most sequences to explain.")] = 200,
    every_token: Annotated[
        bool,
        typer.Option(
            "--every-token",
            help="Explain all tokens of a file, as of a text; else those of spans and uncertain "
            "ones.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing page.")] = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Show why tokens got their labels: features for and against, what-if, alternatives.

    The page is one file that asks nothing of other hosts.
    """
    from spacy_treecrf.pages.text_page import text_page
    from spacy_treecrf.taggers.explaining import explain_chunks
    from spacy_treecrf.taggers.loading import load_tagger

    _refuse_undecodable(model, source, output)
    if output is not None:
        inputs = [source] if _is_file(source) else []
        refuse_existing(output, force, model_input(model), *inputs)
    tagger = load_tagger(model, pipe=pipe, threads=threads)
    chunks = _chunks(tagger, source, encoding)
    found = explain_chunks(tagger, chunks, every_token=every_token or not _is_file(source))
    shown = list(progress(islice(found, limit), None, "explaining", "sequence"))
    if next(found, None) is not None:
        say(f"treecrf: these are the first {limit:,} sequences; --limit shows more")
    if output is None:
        _print(shown)
        return
    about = f"{len(shown):,} sequences, labelled and explained by {model}"
    if len(shown) == 1:
        about = f"Labelled and explained by {model}"
    page = text_page((one.to_dict() for one in shown), title="Why it said that", about=about)
    with output_text(output) as file:
        file.write(page)
    typer.echo(f"saved to {output}")


def _refuse_undecodable(model: str, source: str, output: Path | None) -> None:
    """Refuse arguments whose bytes are no UTF-8: the page and the terminal cannot show them."""
    given = {"model": model, "output": str(output or "")}
    if not _is_file(source):
        given["text"] = source
    for name, value in given.items():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"treecrf: the {name} holds a byte that is no UTF-8, at character {error.start}; "
                "write it in UTF-8"
            ) from None


def _is_file(source: str) -> bool:
    """Whether a source is a file; refuses what looks like the name of one that is not there."""
    try:
        if Path(source).is_file():
            return True
    except OSError:  # too long for a name
        return False
    if len(source.split()) == 1 and Path(source).suffix in SUFFIXES_OF_FILES:
        raise ValueError(f"treecrf: there is no file {source}; check the path")
    return False


def _chunks(tagger: Tagger, source: str, encoding: str) -> Iterator[Chunk]:
    if _is_file(source):
        return tagger.read(source, text=source.endswith(".txt"), encoding=encoding)[1]
    return tagger.read_texts([source])


def _print(shown: Sequence[SequenceExplanation]) -> None:
    """Tables in the terminal."""
    from rich.console import Console

    console = Console()
    for sequence in shown:
        console.print(" ".join(sequence.texts), markup=False, highlight=False)
        console.print(sequence)
        console.print()
