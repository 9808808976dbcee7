"""The command `cross-calibrate`: honest probabilities without held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.calibrate import pipeline_tagger, refuse_for_f1, serve_f1
from spacy_treecrf.cli.shared.common import (
    model_input,
    refuse_existing,
    reports_errors,
    rounds_progress,
    say,
)
from spacy_treecrf.cli.shared.options import Encoding, ForF1
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

if TYPE_CHECKING:
    from spacy_treecrf.columnar.files import ColumnFile
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

EXAMPLES = """\b
Examples:
  spacy-treecrf cross-calibrate model.treecrf train.conll -o honest.treecrf
  spacy-treecrf cross-calibrate training/ner/model-best train.spacy -o honest --new-names --for-f1
"""


# Many parameters: typer makes an option of each.
@reports_errors
def cross_calibrate(
    model: Annotated[
        str, typer.Argument(help="Model file, or spaCy pipeline with a treecrf pipe.")
    ],
    train: Annotated[
        str,
        typer.Argument(help="All that the model was trained on: a column file, or .spacy."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file, or folder of the pipeline.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    folds: Annotated[
        int, typer.Option(min=2, help="Parts of the data, each judged by a model of the others.")
    ] = 5,
    new_names: Annotated[
        bool,
        typer.Option("--new-names", help="Models that judge a part do not know any of its names."),
    ] = False,
    for_f1: ForF1 = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
) -> None:
    """Make probabilities honest by the training data alone, without held-out data.

    What is wrong with models of some parts of the data, on the others, is wrong with the model of
    all of them: by --folds trainings a temperature is learned that divides all scores, and, where
    labels are spans, what is taken off the score of O.

    --new-names is for texts of another kind than the training data, whose names will be new. With
    --for-f1 the setting expected_f1 of a pipe becomes the F1 that models expect of what they have
    not seen: from now on it sets the spans that serve F1 best. Take both where you expect a low F1.
    """
    if model_input(model).is_file():
        refuse_for_f1(for_f1)
        refuse_existing(output, force, model_input(model), train)
        _of_file(model, train, output, encoding, folds, new_names)
    else:
        refuse_folder(output, force, [model])
        tagger = pipeline_tagger(model, pipe)
        _of_pipeline(tagger, train, output, folds, new_names, for_f1)
    say(f"wrote {output}")


def _of_file(
    model: str, train: str, output: Path, encoding: str, folds: int, new_names: bool
) -> None:
    from spacy_treecrf.columnar.files import read_column_file
    from spacy_treecrf.columnar.model import features_of
    from spacy_treecrf.columnar.training import cross_calibrated
    from spacy_treecrf.taggers.column_tagger import ColumnTagger
    from spacy_treecrf.taggers.loading import load_tagger

    tagger = load_tagger(model)
    assert isinstance(tagger, ColumnTagger)
    known = tagger.column_model
    file = read_column_file(train, encoding)
    sequences, labels = known.template.split(file, need_labels=True)
    assert labels is not None
    _refuse_other_labels(known.crf.labels, labels, file)
    X = list(features_of(known.template, known.words, sequences, file.place))
    found = cross_calibrated(known, (X, labels), folds, new_names)
    _tell(found.crf.temperature, found.crf.potentials.outside)
    found.save(output)


def _refuse_other_labels(
    known: Sequence[str], labels: Sequence[Sequence[str | None]], file: ColumnFile
) -> None:
    """Refuse a file that is not the training data, or whose labels are soft: each would be one."""
    allowed = {None, *known}
    for s, own in enumerate(labels):
        for t, label in enumerate(own):
            if label not in allowed:
                raise ValueError(
                    f"treecrf: {file.place(s, t)}: the model does not have the label {label!r}; "
                    "pass the file that it was trained on, with one label for each token: soft "
                    "labels cannot be judged by"
                )


def _of_pipeline(
    tagger: PipelineTagger, train: str, output: Path, folds: int, new_names: bool, for_f1: bool
) -> None:
    from spacy_treecrf.pipeline.calibrating import require_chosen_spans

    nlp, pipe = tagger.nlp, tagger.pipe
    if for_f1:
        require_chosen_spans(pipe)
    examples = list(tagger.examples(train, "train"))
    with rounds_progress("training on parts") as tell:
        found = pipe.cross_calibrate(examples, folds, new_names, report=tell)
    _tell(found.temperature, found.outside)
    if for_f1 and found.expected_f1 is not None:
        serve_f1(nlp, pipe, found.expected_f1)
    write_pipeline(nlp, output)


def _tell(temperature: float, outside: float) -> None:
    say(f"temperature {temperature:.3f}")
    if outside:
        say(f"taken off the score of O {outside:.3f}")
