"""The command `vectors`: word vectors from one's own text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import progress, reports_errors, say
from spacy_treecrf.cli.shared.options import Encoding
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

EXAMPLES = """\b
Examples:
  spacy-treecrf vectors notes/*.txt -o notes_vectors
  spacy train ner.cfg -o out --paths.train train.spacy --paths.dev dev.spacy \\
    --paths.vectors notes_vectors --components.treecrf.features.vectors 255

Text of the kind that the tagger will read serves best; it needs no labels. For column files:
`spacy-treecrf train --features vectors=notes_vectors`.
"""


# Many parameters: typer makes an option of each.
@reports_errors
def vectors(
    texts: Annotated[
        list[Path],
        typer.Argument(help="Text files, or .spacy files, whose tokens are taken as they are."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the pipeline that has the vectors.")
    ],
    lang: Annotated[str, typer.Option(help="The language, whose tokenizer finds words.")] = "en",
    dimensions: Annotated[
        int, typer.Option(min=1, max=1000, help="Numbers in a vector, each a column of the tagger.")
    ] = 50,
    epochs: Annotated[int, typer.Option(min=1, help="How often the text is read.")] = 5,
    rows: Annotated[
        int, typer.Option(min=1, max=2**30, help="Rows of the table of letter n-grams.")
    ] = 200_000,
    min_count: Annotated[
        int, typer.Option(min=1, help="Rarer words do not take part in learning.")
    ] = 2,
    cased: Annotated[
        bool, typer.Option("--cased", help="Let words in capitals have vectors of their own.")
    ] = False,
    threads: Annotated[
        int,
        typer.Option(min=1, help="With more than one, each run gives slightly other vectors."),
    ] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    encoding: Encoding = "utf-8",
) -> None:
    """Learn word vectors from unlabelled text, for columns of a tagger.

    They are made by floret from letter n-grams, so that every word has a vector, also one that the
    text does not have.
    """
    from spacy_treecrf.formats.languages import blank_pipeline
    from spacy_treecrf.vectors.learning import VectorSettings, learn_vectors, require_floret
    from spacy_treecrf.vectors.sentences import read_sentences

    require_floret()
    refuse_folder(output, force, [str(path) for path in texts])
    nlp = blank_pipeline(lang)
    settings = VectorSettings(dimensions, epochs, rows, min_count, not cased, threads)
    read = progress(read_sentences(texts, nlp, encoding), None, "reading", "line")
    size = learn_vectors(read, nlp, settings)
    write_pipeline(nlp, output)
    say(
        f"wrote {output}: vectors of {dimensions} dimensions from {size.words:,} words, "
        f"{size.different:,} of them different, {size.learned:,} learned"
    )
