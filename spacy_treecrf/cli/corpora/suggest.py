"""The command `suggest`: which texts to annotate next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import (
    model_input,
    print_json,
    progress,
    refuse_existing,
    reports_errors,
    say,
)
from spacy_treecrf.cli.shared.options import Encoding, Force, Threads
from spacy_treecrf.storage.files import replacing

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.tagger import Chunk, Tagger
    from spacy_treecrf.suggest.choosing import Chosen

EXAMPLES = """\b
Formats of the output: prodigy, label-studio, doccano, all with what the model would annotate; or
text, a text in each line.
\b
Examples:
  spacy-treecrf suggest training/ner/model-best texts.txt --budget 5000 -o tasks.jsonl
  spacy-treecrf suggest training/ner/model-best pool.spacy -o tasks.json --format label-studio
  spacy-treecrf suggest model.treecrf pool.conll --by wrong --budget 2000 -o tasks.jsonl
  spacy-treecrf suggest a.treecrf pool.conll --by committee --committee b.treecrf -o tasks.jsonl
"""
TEXT = "text"
WRITABLE = ("prodigy", "label-studio", "doccano", TEXT)
SHOWN = 10
MOST_LETTERS = 60


# Many parameters: typer makes an option of each.
# Long: half of it is the signature.
@reports_errors
def suggest(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    texts: Annotated[
        str,
        typer.Argument(
            help="A .txt file with a text in each line or a .spacy file, for pipelines; or a "
            "column file."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the annotation tool.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", help=f"Of the output: {', '.join(WRITABLE)}.")
    ] = "prodigy",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens of all chosen texts together; default: all.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="What to look for: entropy (of the labels of a text), confidence (that the best "
            "labels are wrong), wrong (expected number of wrong spans), committee."
        ),
    ] = "entropy",
    committee: Annotated[
        list[str] | None,
        typer.Option(help="Another model, by --by committee; may be repeated."),
    ] = None,
    diversity: Annotated[
        float,
        typer.Option(help="What words lose each time that a chosen text has them, 0 to 1."),
    ] = 0.5,
    by_token: Annotated[
        float, typer.Option(help="1: rank by uncertainty per token; 0: by that of the text.")
    ] = 1.0,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the chosen texts as JSON.")
    ] = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Choose the texts to annotate next, within a budget of tokens.

    The texts a model is least sure of come first, and less of what was chosen before.
    """
    from spacy_treecrf.suggest.choosing import Question, choose_texts, read_texts
    from spacy_treecrf.suggest.selection import Choice
    from spacy_treecrf.suggest.uncertainty import STRATEGIES
    from spacy_treecrf.taggers.loading import load_tagger

    for name, value, known in (("--by", by, STRATEGIES), ("--format", format, WRITABLE)):
        if value not in known:
            raise ValueError(f"treecrf: {name} is {value!r}; use one of {', '.join(known)}")
    choice = Choice(budget, diversity, by_token)
    if output is not None:
        others = [model_input(one) for one in committee or []]
        refuse_existing(output, force, model_input(model), texts, *others)
    if committee and by != "committee":
        raise ValueError("treecrf: --committee goes with --by committee; leave one out")
    members = [load_tagger(one, pipe=pipe, threads=threads) for one in [model, *(committee or [])]]
    question = Question(by, members[1:])
    judged = list(read_texts(members[0], _reader(texts, encoding), question))
    chosen = choose_texts(judged, choice)
    if output is not None:
        with replacing(output) as file:
            file.writelines(_content(format, chosen))
    if as_json:
        print_json([one.to_dict() for one in chosen])
        return
    _print_chosen(chosen, len(judged))
    if output is not None:
        say(f"saved to {output}")


def _reader(texts: str, encoding: str) -> Callable[[Tagger], Iterable[Chunk]]:
    """What reads the source by a tagger; only the first tagger shows a bar."""
    told: list[str] = []

    def read(tagger: Tagger) -> Iterable[Chunk]:
        n, chunks = tagger.read(texts, text=texts.endswith(".txt"), encoding=encoding)
        if told:
            return chunks
        told.append(tagger.name)
        return progress(chunks, n, f"judging by {tagger.name}", "batch")

    return read


def _content(format: str, chosen: list[Chosen]) -> Iterator[bytes]:
    if format == TEXT:
        return ((" ".join(one.text.text.split()) + "\n").encode() for one in chosen)
    from spacy_treecrf.formats.converting import FORMATS, TextFormat

    writer = FORMATS[format]
    assert isinstance(writer, TextFormat)
    assert writer.write is not None
    counting = {"counting": None} if writer.counted else {}
    return writer.write([one.text.annotated() for one in chosen], **counting)


def _print_chosen(chosen: list[Chosen], n_texts: int) -> None:
    from spacy_treecrf.cli.shared.tables import table

    rows = [
        [one.rank, one.text.number + 1, f"{one.text.candidate.value:.3g}", len(one.text.tokens),
         _short(one.text.text)]
        for one in chosen[:SHOWN]
    ]  # fmt: skip
    typer.echo(table(["rank", "text", "value", "tokens", ""], rows))
    tokens = sum(len(one.text.tokens) for one in chosen)
    typer.echo(f"{len(chosen):,} of {n_texts:,} texts, {tokens:,} tokens")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"
