"""The command `prune`: a trained model as a small file for prediction alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import model_input, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.options import Encoding
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.tagger import Tagger
    from spacy_treecrf.models.crf import CRF
    from spacy_treecrf.models.model import SequenceModel

EXAMPLES = """\b
Examples:
  spacy-treecrf prune model.treecrf -o small.treecrf
  spacy-treecrf prune model.treecrf -o small.treecrf --dev dev.conll
  spacy-treecrf prune training/ner/model-best -o training/ner/small --dev dev.spacy

Dev data should not be those that the model was trained on: weights that only training data need
would all stay.
"""
NAMES = {"span_f1": "span F1 %", "token_accuracy": "token accuracy %"}


@reports_errors
def prune(
    model: Annotated[
        str, typer.Argument(help="Model file, or spaCy pipeline with a treecrf pipe.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file, or folder of the pipeline.")
    ],
    dev: Annotated[
        str | None,
        typer.Option(help="Annotated data: also drop small weights, as many as cost nothing here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
) -> None:
    """Make a model small: what no prediction needs is left out, and the rest is packed.

    Without --dev it predicts exactly the same. With --dev, weights below a threshold are dropped as
    well, the others are rounded, and accuracy is measured before and after. A pruned model cannot
    be trained further: keep the old one for that.
    """
    if model_input(model).is_file():
        refuse_existing(output, force, model_input(model), dev)
        _prune_file(model, output, dev, encoding)
    else:
        refuse_folder(output, force, [model])
        _prune_pipeline(model, output, dev, encoding, pipe)
    say(f"wrote {output}")


def _prune_file(model: str, output: Path, dev: str | None, encoding: str) -> None:
    from spacy_treecrf.columnar.model import model_file
    from spacy_treecrf.estimators import BoostedCRF
    from spacy_treecrf.taggers.loading import load_model, load_tagger

    learned, column_model = load_model(model)
    crf = _crf(learned, model)
    if dev is not None:
        crf = _without_small_weights(load_tagger(model), crf, dev, encoding)
    if column_model is None:
        estimator = BoostedCRF.load(model)
        estimator.model_ = crf
        estimator.save(output, compact=True)
    else:
        replace(column_model, crf=crf).compacted().save(output)
    _say_sizes(model_file(model).stat().st_size, output.stat().st_size)


def _prune_pipeline(
    model: str, output: Path, dev: str | None, encoding: str, pipe: str | None
) -> None:
    from spacy_treecrf.taggers.loading import load_pipe
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    nlp, found = load_pipe(model, pipe)
    crf = _crf(found.shim.trained, model)
    before = len(found.shim.to_bytes())
    if dev is not None:
        crf = _without_small_weights(PipelineTagger(nlp, found, model), crf, dev, encoding)
    found.shim.learned = crf.compacted()
    write_pipeline(nlp, output)
    _say_sizes(before, len(found.shim.to_bytes()))


def _without_small_weights(tagger: Tagger, crf: CRF, dev: str, encoding: str) -> CRF:
    """The CRF without the weights that the dev data do not miss; says what each threshold does."""
    from spacy_treecrf.taggers.pruning import best_trial, main_figure, try_thresholds

    def figure_of(smaller: CRF) -> float:
        tagger.model = smaller
        # Read anew each time, because pipes write on docs.
        return main_figure(tagger, tagger.read(dev, gold=True, encoding=encoding)[1])[1]

    name, _ = main_figure(tagger, tagger.read(dev, gold=True, encoding=encoding)[1])
    say(f"threshold   weights   {NAMES[name]} of {dev}")
    trials = []
    for trial in try_thresholds(crf, figure_of):
        trials.append(trial)
        threshold = "as it is" if trial.threshold is None else f"{trial.threshold:g}"
        say(f"{threshold:>9} {trial.weights:>9}   {trial.figure:.2f}")
    best = best_trial(trials)
    if best.threshold is None:
        say("every threshold costs accuracy: no weight is dropped")
    else:
        before, after = trials[0].figure, best.figure
        say(f"dropped weights below {best.threshold:g}: {NAMES[name]} {before:.2f} -> {after:.2f}")
    return best.crf


def _say_sizes(before: int, after: int) -> None:
    say(f"model: {before / 1e6:.2f} MB -> {after / 1e6:.2f} MB")


def _crf(model: SequenceModel, name: str) -> CRF:
    from spacy_treecrf.models.crf import CRF

    if not isinstance(model, CRF):
        raise ValueError(
            f"treecrf: {name} holds a {type(model).__name__}; only boosted CRFs can be pruned; an "
            "estimator's save(..., compact=True) packs any model"
        )
    return model
