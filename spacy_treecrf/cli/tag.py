"""The command `tag`: labels for new data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import pairwise
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
from spacy_treecrf.cli.shared.options import Force, Threads
from spacy_treecrf.engine.limits import MAX_NBEST

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.tagger import Chunk, Tagger
    from spacy_treecrf.models.predictor import ScoredSequences

EXAMPLES = """\b
Examples:
  spacy-treecrf tag model.treecrf new.conll
  spacy-treecrf tag model.treecrf new.conll --probabilities -o tagged.conll
  cat new.conll | spacy-treecrf tag model.treecrf - --nbest 3
  spacy-treecrf tag training/ner/model-best news.txt --text --json
"""
MOST_COLUMNS = 4  # of the column files that people call .txt, as those of CoNLL-2003


# Many parameters: typer makes an option of each.
@reports_errors
def tag(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    data: Annotated[
        str,
        typer.Argument(help="Column file, or raw text with --text; - is the standard input."),
    ],
    text: Annotated[
        bool,
        typer.Option("--text", help="Data is raw text, a document per line (spaCy pipelines)."),
    ] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Add the probability of each label.")
    ] = False,
    nbest: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_NBEST, help="Write so many labellings of each sequence, best first."
        ),
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; default: standard output.")
    ] = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object per line and sequence.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the data.")] = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Label data with a trained model.

    The label is written as a further column. With --nbest, each labelling begins with a line
    "# rank probability", as CRF++ writes it.
    """
    from spacy_treecrf.engine.threads import Workers
    from spacy_treecrf.taggers.loading import load_tagger

    if output is not None:
        _refuse_docs(output)
        refuse_existing(output, force, model_input(model), data)
    tagger = load_tagger(model, pipe=pipe, threads=threads)
    n, chunks = tagger.read(data, text=text, encoding=encoding)
    with output_text(output) as file, Workers(threads) as workers:
        for i, chunk in enumerate(progress(chunks, n, "tagging", "batch")):
            if i == 0 and not text:
                _warn_of_text(data, chunk)
            scored = tagger.apply(chunk, workers)
            if as_json:
                lines = _json_lines(tagger, chunk, scored, probabilities, nbest)
            elif nbest:
                lines = _nbest_lines(tagger, chunk, scored, nbest)
            else:
                lines = _column_lines(tagger, chunk, scored, probabilities)
            file.writelines(line + "\n" for line in lines)


def _refuse_docs(output: Path) -> None:
    if output.suffix == ".spacy":
        raise ValueError(
            f"treecrf: {output} is a name for docs of spaCy, and this writes columns or JSON; use "
            "another name, or store the docs of nlp.pipe in a DocBin"
        )


def _warn_of_text(data: str, chunk: Chunk) -> None:
    """Say if a column file for a pipeline looks like text: the words of a line are its columns."""
    columns = len(chunk.rows[0][0])
    if chunk.docs is not None and data.endswith(".txt") and columns > MOST_COLUMNS:
        say(
            f"treecrf: {data} is read as a column file of {columns} columns, the first of which "
            "holds the tokens; if this is raw text, use --text"
        )


def _column_lines(
    tagger: Tagger, chunk: Chunk, scored: ScoredSequences, probabilities: bool
) -> Iterator[str]:
    labels = tagger.label(chunk, scored)
    chosen = _chosen(tagger, scored, labels) if probabilities else None
    at = 0
    for rows in chunk.rows:
        for row in rows:
            more = [labels[at]] if chosen is None else [labels[at], f"{chosen[at]:.6f}"]
            yield "\t".join([*map(_cell, row), *more])
            at += 1
        yield ""


def _nbest_lines(tagger: Tagger, chunk: Chunk, scored: ScoredSequences, n: int) -> Iterator[str]:
    for rows, found in zip(chunk.rows, _nbest(tagger, scored, n), strict=True):
        for rank, (labels, probability) in enumerate(found):
            yield f"# {rank} {probability:.6f}"
            yield from (
                "\t".join([*map(_cell, row), label])
                for row, label in zip(rows, labels, strict=True)
            )
            yield ""


def _json_lines(
    tagger: Tagger, chunk: Chunk, scored: ScoredSequences, probabilities: bool, n: int
) -> Iterator[str]:
    best = _nbest(tagger, scored, n) if n else None
    labels = tagger.label(chunk, scored)
    chosen = _chosen(tagger, scored, labels) if probabilities else None
    for s, (a, b) in enumerate(pairwise(chunk.data.offsets.tolist())):
        sequence: dict[str, object] = {
            "tokens": chunk.words(s),
            "labels": labels[a:b],
        }
        if chosen is not None:
            sequence["probabilities"] = [round(p, 6) for p in chosen[a:b]]
        if best is not None:
            sequence["nbest"] = [
                {"labels": path, "probability": round(p, 6)} for path, p in best[s]
            ]
        yield json.dumps(sequence, ensure_ascii=False)


def _chosen(tagger: Tagger, scored: ScoredSequences, labels: list[str]) -> list[float]:
    from spacy_treecrf.evaluation.judging import chosen_probabilities

    chosen: list[float] = chosen_probabilities(scored, tagger.model.labels, labels).tolist()
    return chosen


def _nbest(tagger: Tagger, scored: ScoredSequences, n: int) -> list[list[tuple[list[str], float]]]:
    names = tagger.model.labels
    return [
        [
            ([names[i] for i in path], math.exp(log_p))
            for path, log_p in zip(paths.tolist(), log_ps.tolist(), strict=True)
        ]
        for paths, log_ps in scored.nbest(n)
    ]


def _cell(value: str) -> str:
    """The value with escapes for line feeds and tabs, which a column file cannot hold."""
    return value.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
