"""The command `report`: how good a model is and where it errs, as one page for a browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf import __version__
from spacy_treecrf.cli.shared.common import (
    model_input,
    output_text,
    progress,
    refuse_existing,
    reports_errors,
    resampling_progress,
)
from spacy_treecrf.cli.shared.options import Confidence, Data, Encoding, Resamples, Seed, Threads

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.observing import Observed
    from spacy_treecrf.evaluation.tagger import Tagger
    from spacy_treecrf.report.learning import LearningCurve

EXAMPLES = """\b
Examples:
  spacy-treecrf report training/ner/model-best test.spacy -o report.html
  spacy-treecrf report model.treecrf test.conll -o report.html
  spacy-treecrf report new.treecrf test.conll -o report.html --against old.treecrf
"""


# Many parameters: typer makes an option of each.
@reports_errors
def report(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page: an .html file.")],
    against: Annotated[
        str | None, typer.Option(help="Another model, which is shown beside the first.")
    ] = None,
    errors: Annotated[int, typer.Option(min=0, help="Most confident errors to show.")] = 20,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Of a spaCy pipeline: file that spacy.ConsoleLogger.v3 wrote (output_file), for "
            "the learning curve; without it, what the pipe has kept."
        ),
    ] = None,
    resamples: Resamples = 1000,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing page.")] = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    pipe_against: Annotated[str | None, typer.Option(help="The same of the other model.")] = None,
    threads: Threads = 0,
) -> None:
    """Write a page on how good a model is, how reliable its probabilities, and where it errs.

    The page is one file that asks nothing of other hosts. It needs no extra.
    """
    from spacy_treecrf.evaluation.bootstrap import check_resampling
    from spacy_treecrf.report.reasons import reason_of
    from spacy_treecrf.report.report import Resampling, report_of, rival_of
    from spacy_treecrf.report.report_page import report_page
    from spacy_treecrf.taggers.loading import load_tagger

    other_input = model_input(against) if against else None
    refuse_existing(output, force, model_input(model), data, log, other_input)
    check_resampling(resamples, confidence)
    tagger = load_tagger(model, pipe=pipe, threads=threads)
    curves = _curves(tagger, log)
    own = _observed(tagger, data, encoding, errors)
    resampling = Resampling(resamples, confidence, seed, resampling_progress(resamples))
    rival = None
    if against is not None:
        other = load_tagger(against, pipe=pipe_against, threads=threads)
        rival = rival_of(against, own, _observed(other, data, encoding, 0), resampling)
    found = report_of(
        (model, data),
        tagger.model,
        own,
        curves=curves,
        explain=partial(reason_of, tagger),
        most_errors=errors,
        resampling=resampling,
    )
    with output_text(output) as file:
        file.write(report_page(found, rival, version=__version__))
    typer.echo(f"saved to {output}")


def _observed(tagger: Tagger, data: str, encoding: str, errors: int) -> Observed:
    from spacy_treecrf.evaluation.judging import require_gold
    from spacy_treecrf.evaluation.observing import observe

    n, chunks = tagger.read(data, gold=True, encoding=encoding)
    found = observe(tagger, progress(chunks, n, f"labelling by {tagger.name}", "batch"), errors)
    require_gold(found.judged, tagger.name, data)
    return found


def _curves(tagger: Tagger, log: Path | None) -> list[LearningCurve]:
    """The learning curves of a log, of a model for column files, or of a pipe."""
    from spacy_treecrf.report.learning import (
        curves_of_column_model,
        curves_of_pipe,
        curves_of_spacy_log,
    )
    from spacy_treecrf.taggers.column_tagger import ColumnTagger

    if isinstance(tagger, ColumnTagger):
        if log is not None:
            raise ValueError(
                "treecrf: --log is a log of spaCy, and a model for column files has kept its own "
                "curve; leave --log out"
            )
        return curves_of_column_model(tagger.column_model.curve, tagger.model.rounds)
    from spacy_treecrf.pipeline.history import history_of
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    assert isinstance(tagger, PipelineTagger)
    if log is not None:
        return curves_of_spacy_log(log, tagger.pipe.name)
    return curves_of_pipe(history_of(tagger.pipe.cfg))
