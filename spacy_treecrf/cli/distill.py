"""The command `distill`: a student learns from what a teacher says of texts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import INTERRUPTED, progress, reports_errors, say
from spacy_treecrf.cli.shared.options import Encoding
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder

if TYPE_CHECKING:
    from spacy.language import Language

EXAMPLES = """\b
Examples:
  spacy-treecrf distill training/average texts.txt ner.cfg -o student
  spacy-treecrf distill training/average unlabelled.spacy ner.cfg -o student --dev dev.spacy
  spacy-treecrf distill en_core_web_trf texts.txt ner.cfg -o student --gold train.spacy

The student is in student/model-best. Texts of the kind that it will read teach most; they need no
labels.
"""


# Many parameters: typer makes an option of each.
@reports_errors
def distill(
    teacher: Annotated[str, typer.Argument(help="Any spaCy pipeline: folder or package.")],
    texts: Annotated[
        Path, typer.Argument(help="A .txt file with a text in each line, or a .spacy file.")
    ],
    config: Annotated[Path, typer.Argument(help="Config of the student, with a treecrf pipe.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model-best and model-last.")
    ],
    dev: Annotated[
        Path | None,
        typer.Option(
            help="Held-out data that choose the best step: a .spacy file. Default: a tenth of the "
            "texts, as the teacher labels them."
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="A .spacy file of annotated docs to learn from as well.")
    ] = None,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the teacher's treecrf pipe, if it has several.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace models that are there.")] = False,
    encoding: Encoding = "utf-8",
) -> None:
    """Train a config on what a teacher says of texts, label by label.

    A teacher with a treecrf pipe is learned from by its exact probabilities of labels and edges,
    any other by its labels.
    """
    from spacy_treecrf.distillation.lessons import (
        lessons,
        read_annotated,
        read_texts,
        teaching_pipe,
    )
    from spacy_treecrf.distillation.student import (
        extensions_read,
        load_config,
        new_student,
        write_lessons,
    )
    from spacy_treecrf.taggers.loading import load_pipeline

    refuse_folder(output, force, [teacher])
    student = load_config(config, {})
    nlp = load_pipeline(teacher)
    teaching = teaching_pipe(nlp, pipe)
    read = list(read_texts(texts, nlp, encoding))
    told = lessons(nlp, teaching, read, extensions_read(student))
    taught = list(progress(told, len(read), "teaching", "doc"))
    own = [] if gold is None else list(read_annotated(gold, nlp))
    with tempfile.TemporaryDirectory(prefix="treecrf-") as folder:
        files = write_lessons(taught, own, dev, Path(folder))
        kind = "labels alone" if teaching is None else "probabilities"
        say(f"{len(taught):,} texts, {sum(map(len, taught)):,} tokens: {kind} of {teacher}")
        _train(new_student(student, files), output)
    say(f"the student is in {output / 'model-best'}")


def _train(student: Language, output: Path) -> None:
    """Train a student; Ctrl-C says what the output holds, as earlier models are deleted first."""
    from spacy_treecrf.distillation.student import held_models, train_student

    try:
        train_student(student, output)
    except KeyboardInterrupt:
        held = " and ".join(held_models(output)) or "no model"
        say(f"treecrf: interrupted while models were replaced; {output} now holds {held}")
        raise typer.Exit(INTERRUPTED) from None
