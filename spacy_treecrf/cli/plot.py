"""The command `plot`: learning curve and calibration as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import model_input, refuse_existing, reports_errors
from spacy_treecrf.cli.shared.options import Encoding, Threads
from spacy_treecrf.storage.files import replacing

EXAMPLES = """\b
Examples:
  spacy-treecrf plot model.treecrf -o curve.png
  spacy-treecrf plot model.treecrf -o curve.svg --data test.conll
  spacy-treecrf plot training/ner/model-best -o ner.png --log training/ner/log.jsonl
"""
SUFFIXES = (".png", ".svg", ".pdf")


@reports_errors
def plot(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture: .png, .svg or .pdf.")],
    data: Annotated[
        str | None, typer.Option(help="Labelled data to plot the calibration on.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Of a spaCy pipeline: file that spacy.ConsoleLogger.v3 wrote (output_file)."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing picture.")] = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Plot the learning curve, which `train` keeps in the model, and the calibration on data.

    Needs matplotlib, the extra "plot": pip install matplotlib, or "spacy-treecrf[plot]".
    """
    from spacy_treecrf.cli.evaluate import judge_data
    from spacy_treecrf.evaluation import plots
    from spacy_treecrf.evaluation.figures import calibration_of
    from spacy_treecrf.taggers.loading import load_model, load_tagger

    if output.suffix.lower() not in SUFFIXES:
        raise ValueError(f"treecrf: the picture {output} must end in one of {', '.join(SUFFIXES)}")
    refuse_existing(output, force, model_input(model), data, log)
    plots.require_matplotlib()
    curve = None
    if log is not None:
        curve = plots.curve_of_log(log, pipe or "treecrf")
    else:
        learned, column_model = load_model(model, pipe=pipe)
        if column_model is not None:
            curve = plots.curve_of_training(column_model.curve, learned.rounds)
    calibration = None
    if data is not None:
        tagger = load_tagger(model, pipe=pipe, threads=threads)
        calibration = calibration_of(judge_data(tagger, data, encoding))
    if curve is None and calibration is None:
        raise ValueError(
            f"treecrf: {model} keeps no learning curve, as spaCy's training does not write one; "
            "pass --log with the file of spacy.ConsoleLogger.v3, or --data for the calibration"
        )
    picture = plots.draw(output.suffix.lower().removeprefix("."), curve, calibration)
    with replacing(output) as file:
        file.write(picture)
    typer.echo(f"saved to {output}")
