"""The command `init`: a config that is ready for `spacy train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import output_text, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.options import Force
from spacy_treecrf.configs.ready_configs import TASKS

EXAMPLES = "\b\nTasks:\n" + "".join(f"  {name:10} {what}\n" for name, what in TASKS.items())
EXAMPLES += """
\b
Examples:
  spacy-treecrf init ner -o ner.cfg
  spacy-treecrf init ner --lang es --features clusters -o es.cfg
  spacy train ner.cfg -o out --paths.train train.spacy --paths.dev dev.spacy
"""


@reports_errors
def init(
    *,
    task: Annotated[str, typer.Argument(help="What to label; see below.")],
    lang: Annotated[
        str | None, typer.Option(help="Language, by spaCy's code, as en, es, xx.")
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            help="plain: words alone; clusters: also Brown clusters, from spacy-lookups-data; "
            "vectors: also word vectors, from a pipeline that has them."
        ),
    ] = "plain",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Config file; default: standard output.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a config for `spacy train`: ready to use, with comments."""
    from spacy_treecrf.configs.ready_configs import OF_WORDS, ready_config
    from spacy_treecrf.formats.languages import lacking_package, language_class

    if lang is not None:
        language_class(lang)
    text = ready_config(task, lang, features)
    if output is not None:
        refuse_existing(output, force)
        text = text.replace(f"spacy train {task}.cfg", f"spacy train {output.name}")
    with output_text(output) as file:
        file.write(text)
    if output is not None:
        command = f"spacy train {output} -o out --paths.train train.spacy --paths.dev dev.spacy"
        language = _language_of(text)
        if features == "vectors":
            vectors = "en_core_web_md" if language == "en" else "VECTORS"
            command += f" --paths.vectors {vectors}"
        say(f"wrote {output}; train it with\n  {command}")
        if features == "vectors" and language != "en":
            say(
                f"VECTORS: a pipeline or folder with word vectors of {language!r}, such as "
                "`spacy-treecrf vectors` learns from text"
            )
    if features == "clusters":
        from spacy_treecrf.features.clusters import lacking_table

        if lacks := lacking_table(_language_of(text)):
            say(f"treecrf: before training, {lacks}")
    if task in OF_WORDS and (lacks := lacking_package(_language_of(text))):
        say(f"treecrf: before training, install what the tokenizer needs: {lacks}")


def _language_of(config: str) -> str:
    from thinc.api import Config

    language: str = Config().from_str(config, interpolate=False)["nlp"]["lang"]
    return language
