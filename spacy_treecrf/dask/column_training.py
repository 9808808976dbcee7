"""Training of a model for column files on a cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

from spacy_treecrf.columnar.model import ColumnModel, TrainingCurve
from spacy_treecrf.columnar.template import Template, make_template
from spacy_treecrf.columnar.training import TrainingStopped
from spacy_treecrf.dask import DaskBoostedCRF  # not its module: this says which extra is missing
from spacy_treecrf.dask.parts import file_paths, naming, read_columns
from spacy_treecrf.models.model import TrainingInterrupted


class ClusterFit(NamedTuple):
    """A model, and on how much it was trained."""

    model: ColumnModel
    n_sequences: int
    n_tokens: int


def input_files(data: str, dev: str | None) -> list[str]:
    """The files that the paths or globs mean; those of this machine without a scheme."""
    paths = file_paths([data], "data") + (file_paths([dev], "dev") if dev else [])
    return [path.removeprefix("file://") for path in paths]


def template_of(data: str, **options: Any) -> Template:
    """The template of column files, made of the first of them.

    options: The arguments of `make_template` that say what the columns are.
    """
    path = file_paths([data], "data")[0]
    with naming(path):
        return make_template(read_columns(path), **options)


def fit_on_cluster(
    template: Template,
    data: str,
    dev: str | None,
    scheduler: str | None,
    settings: dict[str, Any],
    verbose: bool = False,
) -> ClusterFit:
    """Train on the column files of a path or glob.

    dev: A path or glob of held-out files; None: there are none.
    scheduler: The address of a scheduler; None: workers are started on this machine.
    settings: The settings of `BoostedCRF` that are not the defaults.
    """
    curve = TrainingCurve()
    crf = DaskBoostedCRF(scheduler, **settings, verbose=verbose, callback=curve.add)
    try:
        crf.fit(data, dev, template=template)
    except TrainingInterrupted as stopped:
        model = ColumnModel(template, crf.local.model_, curve)
        raise TrainingStopped(model) from stopped
    model = ColumnModel(template, crf.local.model_, curve)
    return ClusterFit(model, crf.n_sequences_, crf.n_rows_)
