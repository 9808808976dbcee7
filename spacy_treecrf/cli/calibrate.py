"""The command `calibrate`: a trained model whose probabilities are honest on held-out data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import model_input, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.tagger import Tagger
    from spacy_treecrf.models.crf import CRF

EXAMPLES = """\b
Examples:
  spacy-treecrf calibrate model.treecrf dev.conll -o honest.treecrf
  spacy-treecrf calibrate training/ner/model-best dev.spacy -o training/ner/honest
  spacy-treecrf calibrate training/stress/model-best dev.spacy -o training/stress/honest --curve

Dev data must not be those that the model was trained on: it is too sure of them. Calibrate before
you prune.
"""


@reports_errors
def calibrate(
    model: Annotated[
        str, typer.Argument(help="Model file, or spaCy pipeline with a treecrf pipe.")
    ],
    dev: Annotated[str, typer.Argument(help="Annotated data: a column file, or .spacy.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file, or folder of the pipeline.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of a column file.")] = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    curve: Annotated[
        bool,
        typer.Option("--curve", help="Other numbers where the model is less sure; slower."),
    ] = False,
) -> None:
    """Make probabilities honest: divide all scores by a number that held-out data tell.

    With that number, the temperature, labels of held-out data are right as often as the model
    says, in the mean. It is one for the whole model: labels stay as they are, and probabilities of
    labels, spans and n-best lists still agree with each other.

    With --curve scores of a position are also divided by a number that depends on how unsure the
    model is of it: labels of every probability are then right as often as they say. Probabilities
    agree as before; some labels may change, and predictions are slower.
    """
    if model_input(model).is_file():
        refuse_existing(output, force, model_input(model), dev)
        _calibrate_file(model, dev, output, encoding, curve)
    else:
        refuse_folder(output, force, [model])
        _calibrate_pipeline(model, dev, output, encoding, pipe, curve)
    say(f"wrote {output}")


def _calibrate_file(model: str, dev: str, output: Path, encoding: str, curve: bool) -> None:
    from spacy_treecrf.taggers.column_tagger import ColumnTagger
    from spacy_treecrf.taggers.loading import load_tagger

    tagger = load_tagger(model)
    assert isinstance(tagger, ColumnTagger)
    replace(tagger.column_model, crf=calibrated(tagger, dev, encoding, curve)).save(output)


def _calibrate_pipeline(
    model: str, dev: str, output: Path, encoding: str, pipe: str | None, curve: bool
) -> None:
    from spacy_treecrf.taggers.loading import load_pipe
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    nlp, found = load_pipe(model, pipe)
    found.shim.learned = calibrated(PipelineTagger(nlp, found, model), dev, encoding, curve)
    write_pipeline(nlp, output)


def calibrated(tagger: Tagger, dev: str, encoding: str, curve: bool) -> CRF:
    """The tagger's CRF with honest temperatures; says what they do to the dev data."""
    from spacy_treecrf.taggers.calibrating import calibrated_by

    old = tagger.model
    before, _ = _calibration_error(tagger, dev, encoding)
    new = calibrated_by(tagger, tagger.read(dev, gold=True, encoding=encoding)[1], curve)
    tagger.model = new
    after, floor = _calibration_error(tagger, dev, encoding)
    say(f"temperature {new.temperature / old.temperature:.3f}")
    if new.curve is not None:
        say(f"times exp({new.curve}), where H is the entropy of a position's labels")
    say(f"calibration error % of {dev}: {before:.2f} -> {after:.2f}; by chance {floor:.2f}")
    return new


def _calibration_error(tagger: Tagger, dev: str, encoding: str) -> tuple[float, float]:
    """The calibration error of the labels predicted for annotated data, and its floor, in %."""
    from spacy_treecrf.evaluation.figures import calibration_of
    from spacy_treecrf.evaluation.judging import judge, require_gold

    # Read anew each time, because pipes write on docs.
    judged = judge(tagger, tagger.read(dev, gold=True, encoding=encoding)[1])
    require_gold(judged, tagger.name, dev)
    bins = calibration_of(judged)
    return 100.0 * (bins.error or 0.0), 100.0 * (bins.floor or 0.0)
