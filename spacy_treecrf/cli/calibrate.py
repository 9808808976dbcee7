"""The command `calibrate`: a trained model whose probabilities are honest on held-out data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import model_input, refuse_existing, reports_errors, say
from spacy_treecrf.cli.shared.options import Encoding, ForF1
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder, write_pipeline

if TYPE_CHECKING:
    from spacy.language import Language

    from spacy_treecrf.evaluation.tagger import Tagger
    from spacy_treecrf.models.calibration.search import Wanted
    from spacy_treecrf.models.crf import CRF
    from spacy_treecrf.pipeline.pipe import TreeCRF
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

EXAMPLES = """\b
Examples:
  spacy-treecrf calibrate model.treecrf dev.conll -o honest.treecrf
  spacy-treecrf calibrate training/ner/model-best dev.spacy -o training/ner/honest
  spacy-treecrf calibrate training/stress/model-best dev.spacy -o training/stress/honest --curve

Dev data must not be those that the model was trained on: it is too sure of them; where there are no
others, see `cross-calibrate`. Calibrate before you prune.
"""


# Many parameters: typer makes an option of each.
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
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Lower the score of the label O as well.")
    ] = False,
    curve: Annotated[
        bool,
        typer.Option("--curve", help="Other numbers where the model is less sure; slower."),
    ] = False,
    for_f1: ForF1 = False,
) -> None:
    """Make probabilities honest: divide all scores by a number that held-out data tell.

    With that number, the temperature, labels of held-out data are right as often as the model
    says, in the mean. It is one for the whole model: labels stay as they are, and probabilities of
    labels, spans and n-best lists still agree with each other. Entities that a pipe chooses by
    their probabilities (its settings expected_f1, agreement, parallels and min_prob) may change.

    With --outside a number is taken off the score of O, too, and labels change; both are those
    that make held-out labels most probable. With --curve scores of a position are also divided by
    a number that depends on how unsure the model is of it: labels of every probability are then
    right as often as they say; some labels may change, and predictions are slower. Probabilities
    agree with each other as before. Use one of both options.

    With --for-f1 the setting expected_f1 of a pipe becomes the F1 that it then expects of the dev
    data: from now on it sets the spans that serve F1 best, not those of the best labelling.
    """
    from spacy_treecrf.models.calibration.search import Wanted

    wanted = Wanted(outside, curve)
    wanted.check()
    if model_input(model).is_file():
        refuse_for_f1(for_f1)
        refuse_existing(output, force, model_input(model), dev)
        _calibrate_file(model, dev, output, encoding, wanted)
    else:
        refuse_folder(output, force, [model])
        tagger = pipeline_tagger(model, pipe)
        _calibrate_pipeline(tagger, dev, output, encoding, wanted, for_f1)
    say(f"wrote {output}")


def _calibrate_file(model: str, dev: str, output: Path, encoding: str, wanted: Wanted) -> None:
    from spacy_treecrf.taggers.column_tagger import ColumnTagger
    from spacy_treecrf.taggers.loading import load_tagger

    tagger = load_tagger(model)
    assert isinstance(tagger, ColumnTagger)
    replace(tagger.column_model, crf=calibrated(tagger, dev, encoding, wanted)).save(output)


def _calibrate_pipeline(
    tagger: PipelineTagger, dev: str, output: Path, encoding: str, wanted: Wanted, for_f1: bool
) -> None:
    from spacy_treecrf.pipeline.calibrating import require_chosen_spans

    nlp, pipe = tagger.nlp, tagger.pipe
    if for_f1:
        require_chosen_spans(pipe)
    pipe.shim.learned = calibrated(tagger, dev, encoding, wanted)
    if for_f1:
        chunks = tagger.read(dev, gold=True, encoding=encoding)[1]
        serve_f1(nlp, pipe, pipe.f1_expected_of(doc for own in chunks for doc in own.docs or ()))
    write_pipeline(nlp, output)


def pipeline_tagger(model: str, pipe: str | None) -> PipelineTagger:
    """The tagger of a pipeline, by the name of its treecrf pipe."""
    from spacy_treecrf.taggers.loading import load_pipe
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    return PipelineTagger(*load_pipe(model, pipe), model)


def refuse_for_f1(for_f1: bool) -> None:
    """Refuse --for-f1 of a model for column files, whose labels are those of the best sequence."""
    if for_f1:
        raise ValueError(
            "treecrf: --for-f1 changes a setting of pipelines; leave it out for a model of column "
            "files"
        )


def serve_f1(nlp: Language, pipe: TreeCRF, expected_f1: float) -> None:
    """Let a pipe set the spans that serve F1 best, also when it is stored and loaded again."""
    expected_f1 = round(expected_f1, 3)
    if not expected_f1:  # as a setting, 0 is for the spans of the most probable labels
        say("expected F1 0.0 %: no span is expected, and the setting expected_f1 stays as it was")
        return
    pipe.expected_f1 = nlp.get_pipe_config(pipe.name)["expected_f1"] = expected_f1
    say(f"expected F1 {100 * pipe.expected_f1:.1f} %, which spans are chosen by")


def calibrated(tagger: Tagger, dev: str, encoding: str, wanted: Wanted) -> CRF:
    """The tagger's CRF with honest probabilities; says what that does to the dev data."""
    from spacy_treecrf.taggers.calibrating import correction_for

    before, _ = _calibration_error(tagger, dev, encoding)
    chunks = tagger.read(dev, gold=True, encoding=encoding)[1]
    crf, correction = correction_for(tagger, chunks, wanted)
    tagger.model = crf.corrected(correction)
    after, floor = _calibration_error(tagger, dev, encoding)
    say(f"temperature {correction.temperature:.3f}")
    if wanted.outside:
        say(f"taken off the score of O {correction.outside:.3f}")
    if correction.curve is not None:
        say(f"times exp({correction.curve}), where H is the entropy of a position's labels")
    say(f"calibration error % of {dev}: {before:.2f} -> {after:.2f}; by chance {floor:.2f}")
    return tagger.model


def _calibration_error(tagger: Tagger, dev: str, encoding: str) -> tuple[float, float]:
    """The calibration error of the labels predicted for annotated data, and its floor, in %."""
    from spacy_treecrf.evaluation.figures import calibration_of
    from spacy_treecrf.evaluation.judging import judge, require_gold

    # Read anew each time, because pipes write on docs.
    judged = judge(tagger, tagger.read(dev, gold=True, encoding=encoding)[1])
    require_gold(judged, tagger.name, dev)
    bins = calibration_of(judged)
    return 100.0 * (bins.error or 0.0), 100.0 * (bins.floor or 0.0)
