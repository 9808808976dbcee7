"""The command `convert`: files of annotation tools, and models of CRFsuite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import print_json, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.options import Encoding

EXAMPLES = """\b
Formats: prodigy, label-studio, doccano, brat (a folder), conll, conllu, iob, spacy; and json of
spaCy 2, which is only read. They are told by the suffixes .spacy, .conll, .bio, .tsv, .conllu,
.iob and .ann.
\b
Examples:
  spacy-treecrf convert annotated.jsonl train.spacy --from prodigy --lang en
  spacy-treecrf convert project.json train.conll --from label-studio --alignment expand
  spacy-treecrf convert train.spacy tasks.jsonl --to doccano
  spacy-treecrf convert brat/ train.spacy --lang en
  spacy-treecrf convert model.crfsuite model.treecrf
"""
CRFSUITE = "crfsuite"


# Many parameters: typer makes an option of each.
@reports_errors
def convert(
    source: Annotated[Path, typer.Argument(help="File, or folder of BRAT's files.")],
    target: Annotated[Path, typer.Argument(help="File or folder to write.")],
    source_format: Annotated[
        str | None,
        typer.Option("--from", help="Format of the source; default: by suffix."),
    ] = None,
    target_format: Annotated[
        str | None, typer.Option("--to", help="Format of the target; default: by suffix.")
    ] = None,
    lang: Annotated[
        str, typer.Option(help="Language of spaCy whose tokenizer makes tokens of texts.")
    ] = "xx",
    alignment: Annotated[
        str, typer.Option(help="Of spans that cut tokens: strict leaves out, contract, expand.")
    ] = "strict",
    offsets: Annotated[
        str | None,
        typer.Option(help="How doccano and Label Studio count: utf-16, code-points."),
    ] = None,
    encoding: Encoding = "utf-8",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Convert annotated texts between formats, or a model of CRFsuite into one of ours.

    Texts that nobody has annotated are left out where they would become gold, and counted.
    """
    from spacy_treecrf.storage.crfsuite_file import is_crfsuite_file

    if source_format == CRFSUITE or (source_format is None and is_crfsuite_file(source)):
        _convert_model(source, target, force, as_json)
        return
    from spacy_treecrf.formats.converting import Options
    from spacy_treecrf.formats.converting import convert as convert_texts

    options = Options(lang, alignment, offsets, force, encoding)
    tally = convert_texts(source, target, source_format, target_format, options)
    if as_json:
        print_json(tally.summary())
        return
    for line in tally.lines():
        say(line)


def _convert_model(source: Path, target: Path, force: bool, as_json: bool) -> None:
    from spacy_treecrf import BoostedCRF

    refuse_existing(target, force, source)
    model = BoostedCRF.from_crfsuite(source)
    model.save(target)
    counts = {
        "labels": len(model.classes_),
        "attributes": len({name for name, _ in model.state_features_}),
        "weights": len(model.state_features_) + len(model.transition_features_),
    }
    if as_json:
        print_json(counts)
    else:
        say(", ".join(f"{n:,} {what}" for what, n in counts.items()))
