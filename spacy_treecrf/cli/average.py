"""The command `average`: several trained models as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import model_input, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

if TYPE_CHECKING:
    from spacy_treecrf.columnar.model import ColumnModel
    from spacy_treecrf.models.crf import CRF
    from spacy_treecrf.models.model import SequenceModel

EXAMPLES = """\b
Examples:
  spacy-treecrf average training/seed*/model-best -o training/average
  spacy-treecrf average one.treecrf two.treecrf three.treecrf -o all.treecrf

Train them on the same data with other seeds, and with less than all rows or columns for each tree
(subsample, colsample), or they will all be the same.
"""


@reports_errors
def average(
    models: Annotated[
        list[str], typer.Argument(help="Files of `train`, or spaCy pipelines: two or more.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file, or folder of the pipeline.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipelines have several.")
    ] = None,
) -> None:
    """Average models into one, which is more accurate where there are few data.

    Its scores are the means of the models' scores, and it has all of their trees. Its probabilities
    are exact: geometric means of the models' probabilities, normalised. If pipelines are averaged,
    the other pipes are those of the first.
    """
    from spacy_treecrf.columnar.model import model_file

    if len(models) < 2:
        raise ValueError(f"treecrf: there is nothing to average {models[0]} with; name two or more")
    are_files = [model_file(model).is_file() for model in models]
    if all(are_files):
        refuse_existing(output, force, *map(model_input, models))
        _average_files(models, output)
    elif any(are_files):
        raise ValueError(
            f"treecrf: {models[are_files.index(True)]} is a model file, and "
            f"{models[are_files.index(False)]} is not; name files or pipelines"
        )
    else:
        refuse_folder(output, force, models)
        _average_pipelines(models, pipe, output)
    say(f"wrote {output}")


def _average_files(models: list[str], output: Path) -> None:
    from spacy_treecrf.columnar.model import ColumnModel
    from spacy_treecrf.models.averaging import pooled
    from spacy_treecrf.taggers.loading import load_model

    crfs, column_models = [], []
    for model in models:
        learned, column_model = load_model(model)
        if column_model is None:
            raise ValueError(
                f"treecrf: {model} was saved by an estimator: average such models by "
                "BoostedCRF.average"
            )
        crfs.append(_crf(learned, model))
        column_models.append(column_model)
        if column_model.template.to_state() != column_models[0].template.to_state():
            raise ValueError(
                f"treecrf: {models[0]} and {model} read their columns in different ways; train "
                "them with the same --columns and --window"
            )
        if not _same_words(column_model, column_models[0]):
            raise ValueError(
                f"treecrf: {models[0]} and {model} know different things about words; train them "
                "with the same --features"
            )
    ColumnModel(column_models[0].template, pooled(crfs), words=column_models[0].words).save(output)


def _same_words(one: ColumnModel, other: ColumnModel) -> bool:
    from spacy_treecrf.storage import container

    if one.words is None or other.words is None:
        return one.words is other.words
    return container.dump(one.words.to_state()) == container.dump(other.words.to_state())


def _average_pipelines(models: list[str], pipe: str | None, output: Path) -> None:
    from spacy_treecrf.models.averaging import pooled
    from spacy_treecrf.storage import container
    from spacy_treecrf.taggers.loading import load_pipe

    nlp, first = load_pipe(models[0], pipe)
    crfs = [_crf(first.shim.trained, models[0])]
    features = container.dump(first.features.to_state())
    for model in models[1:]:
        other = load_pipe(model, pipe)[1]
        crfs.append(_crf(other.shim.trained, model))
        if container.dump(other.features.to_state()) != features:
            raise ValueError(
                f"treecrf: {models[0]} and {model} have different features; train them by the "
                "same config"
            )
    first.shim.learned = pooled(crfs)
    write_pipeline(nlp, output)


def _crf(model: SequenceModel, name: str) -> CRF:
    from spacy_treecrf.models.crf import CRF

    if not isinstance(model, CRF):
        raise ValueError(
            f"treecrf: {name} holds a {type(model).__name__}; only boosted CRFs can be averaged"
        )
    return model
