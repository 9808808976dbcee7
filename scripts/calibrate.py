"""Make the probabilities of a task's best model honest, in its place, after `spacy train`.

Most configs need no calibration: their calibration error is below 1 % as they are. Others learn
from few words, and are too sure of new ones: one temperature is enough for `letters`, the two of
NETtalk need a curve. Protein's dev part has relatives of chains in training, on which the model
looks better than it is; there cross-validation by families tells the temperature.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.calibrate import calibrated
from spacy_treecrf.cli.shared.common import reports_errors, say
from spacy_treecrf.cli.shared.pipeline_folders import write_pipeline
from spacy_treecrf.models.calibration.search import Wanted
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.taggers.loading import load_pipe
from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

# Tasks whose dev part tells the temperature, which may be a curve.
BY_DEV = {"letters": Wanted(), "nettalk": Wanted(curve=True), "stress": Wanted(curve=True)}
# Temperatures that `python -m scripts.reproduce.protein` finds in training chains.
KNOWN = {"protein": 1.12}


@reports_errors
def calibrate(
    task: Annotated[str, typer.Argument(help="Name of a config in configs/.")],
    model: Annotated[
        Path | None, typer.Option(help="The pipeline; default: training/<task>/model-best.")
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(help="Annotated docs; default: corpus/<task>/dev.spacy.")
    ] = None,
) -> None:
    """Replace a pipeline by its calibrated twin, if the task needs that."""
    if task not in {*BY_DEV, *KNOWN}:
        say(f"the probabilities of {task} stay as they are: they are honest without calibration")
        return
    folder = model or Path("training", task, "model-best")
    nlp, pipe = load_pipe(str(folder), None)
    crf = pipe.shim.trained
    if crf.temperature != 1.0:
        say(f"{folder} is calibrated already, by the temperature {crf.temperature:.3f}")
        return
    if task in KNOWN:
        assert isinstance(crf, CRF)
        pipe.shim.learned = crf.cooled(KNOWN[task])
        say(f"temperature {KNOWN[task]}, from cross-validation")
    else:
        tagger = PipelineTagger(nlp, pipe, str(folder))
        pipe.shim.learned = calibrated(
            tagger, str(dev or Path("corpus", task, "dev.spacy")), "utf-8", BY_DEV[task]
        )
    write_pipeline(nlp, folder)
    say(f"wrote {folder}")


if __name__ == "__main__":
    typer.run(calibrate)
