"""The commands `evaluate` and `compare`: how good models are, and whether one is better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_treecrf.cli.shared.common import (
    model_input,
    output_text,
    print_json,
    progress,
    refuse_existing,
    reports_errors,
    resampling_progress,
    say,
    to_json,
)
from spacy_treecrf.cli.shared.options import (
    Confidence,
    Data,
    Encoding,
    Force,
    Json,
    Resamples,
    Seed,
    Threads,
)

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.bootstrap import PairedDifference
    from spacy_treecrf.evaluation.figures import Comparison, Figures
    from spacy_treecrf.evaluation.judging import Judged
    from spacy_treecrf.evaluation.tagger import Tagger
    from spacy_treecrf.letters.word_figures import WordFigures

EVALUATE_EXAMPLES = """\b
Examples:
  spacy-treecrf evaluate model.treecrf test.conll
  spacy-treecrf evaluate training/ner/model-best test.spacy --json
  spacy-treecrf evaluate training/ner/model-best test.spacy --as-text
  spacy-treecrf evaluate model.treecrf test.conll --resamples 0
  spacy-treecrf evaluate model.treecrf test.conll --output scores.json
"""
COMPARE_EXAMPLES = """\b
Examples:
  spacy-treecrf compare small.treecrf large.treecrf test.conll
  spacy-treecrf compare model.treecrf training/ner/model-best test.conll --json
"""
NAMES = {
    "token_accuracy": "token accuracy %",
    "sequence_accuracy": "sequence accuracy %",
    "span_precision": "span precision %",
    "span_recall": "span recall %",
    "span_f1": "span F1 %",
    "nll_per_token": "NLL per token",
    "calibration_error": "calibration error %",
}
NAMES_OF_WORDS = {
    "words_right": "words right %",
    "words_right_without_stress": "words right, without stress %",
    "phoneme_errors": "phoneme errors %",
}
MAX_TABLE = 12  # labels of a confusion table that fits on a screen
MOST_MISTAKES = 10
FAR_OFF = 0.3  # the F1 that a pipe sets spans for is so much above the one that it has


# Many parameters: typer makes an option of each.
@reports_errors
def evaluate(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    data: Data,
    resamples: Resamples = 1000,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write everything as JSON to this file."),
    ] = None,
    force: Force = False,
    encoding: Encoding = "utf-8",
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
    as_text: Annotated[
        bool,
        typer.Option(
            "--as-text",
            help="Read docs for their text alone, as `spacy evaluate` does: the pipeline finds "
            "sentences, and tokens unless the spaces between them are unknown, as in docs of "
            "column files. Without it, docs are read as in training.",
        ),
    ] = False,
) -> None:
    """Show token and sequence accuracy, spans by type, likelihood, calibration, confusion.

    Intervals come from resampling whole sequences. Of a pronouncer it also shows how many words are
    pronounced well; with --as-text, annotated words that are none of the text are wrong.
    """
    from spacy_treecrf.evaluation.bootstrap import check_resampling
    from spacy_treecrf.evaluation.figures import figures_of
    from spacy_treecrf.taggers.loading import load_tagger

    if output is not None:
        refuse_existing(output, force, model_input(model), data)
    check_resampling(resamples, confidence)
    tagger = load_tagger(model, pipe=pipe, threads=threads, as_text=as_text)
    judged = judge_data(tagger, data, encoding)
    resampling: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    figures = figures_of(judged, **resampling, progress=resampling_progress(resamples))
    reading = tagger.reading_of(data)
    described = {"model": model, "data": data, "reading": reading, "confidence": confidence}
    found = {**described, **figures.to_json()}
    words = _whole_words(tagger, data, resampling)
    if words is not None:
        found["whole_words"] = words.to_json()
    if output is not None:
        with output_text(output) as file:
            file.write(to_json(found) + "\n")
    if as_json:
        print_json(found)
    else:
        typer.echo(f"{reading}\n")
        _print_figures(figures, confidence)
        if words is not None:
            typer.echo("\n" + _table_of_words(words, confidence))
        _warn_of_few_spans(tagger, figures)


# Many parameters: typer makes an option of each.
@reports_errors
def compare(
    a: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    b: Annotated[str, typer.Argument(help="The model to compare it with.")],
    data: Data,
    resamples: Resamples = 1000,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
    encoding: Encoding = "utf-8",
    pipe_a: Annotated[str | None, typer.Option(help="Name of the treecrf pipe of A.")] = None,
    pipe_b: Annotated[str | None, typer.Option(help="Name of the treecrf pipe of B.")] = None,
    threads: Threads = 0,
) -> None:
    """Is model B better than A? McNemar's test on tokens, paired bootstrap of span F1."""
    from spacy_treecrf.evaluation import figures
    from spacy_treecrf.evaluation.bootstrap import check_resampling
    from spacy_treecrf.taggers.loading import load_tagger

    check_resampling(resamples, confidence)
    result = figures.compare_judged(
        judge_data(load_tagger(a, pipe=pipe_a, threads=threads), data, encoding),
        judge_data(load_tagger(b, pipe=pipe_b, threads=threads), data, encoding),
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        progress=resampling_progress(resamples),
    )
    if as_json:
        print_json({"a": a, "b": b, "data": data, "confidence": confidence, **result.to_json()})
    else:
        _print_comparison(result, confidence)


def judge_data(tagger: Tagger, data: str, encoding: str) -> Judged:
    from spacy_treecrf.evaluation.judging import judge, require_gold

    n, chunks = tagger.read(data, gold=True, encoding=encoding)
    judged = judge(tagger, progress(chunks, n, f"labelling by {tagger.name}", "batch"))
    require_gold(judged, tagger.name, data)
    return judged


def _whole_words(tagger: Tagger, data: str, resampling: dict[str, Any]) -> WordFigures | None:
    """Figures of whole pronunciations, if the tagger's pipeline makes any."""
    if not data.endswith(".spacy"):
        return None
    from spacy_treecrf.letters.word_figures import word_figures
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    assert isinstance(tagger, PipelineTagger)
    return word_figures(tagger.nlp, tagger.examples(data), **resampling)


def _warn_of_few_spans(tagger: Tagger, figures: Figures) -> None:
    """Say if a pipe leaves out spans that would serve F1, because it expects a higher one."""
    expected: float = getattr(getattr(tagger, "pipe", None), "expected_f1", 0.0)
    f1 = figures.figures.get("span_f1")
    far_off = f1 is not None and f1.value is not None and expected - f1.value > FAR_OFF
    if figures.unaligned:
        return
    if f1 is not None and far_off and _chooses_spans(tagger):
        say(
            f"treecrf: the pipe sets spans for an F1 of {expected:.0%} (its setting expected_f1) "
            f"and has {f1.value:.0%} here, so that more spans would serve it; see the option "
            "--for-f1 of `calibrate` and `cross-calibrate`"
        )


def _chooses_spans(tagger: Tagger) -> bool:
    from spacy_treecrf.engine.threads import Workers

    with Workers(1) as workers:
        return tagger.predictor(workers).chooses_spans


def _table_of_words(words: WordFigures, confidence: float) -> str:
    from spacy_treecrf.cli.shared.tables import table, with_interval

    rows = [
        (NAMES_OF_WORDS[name], *with_interval(interval, True))
        for name, interval in words.figures.items()
    ]
    return table([f"{words.words:,} whole words", "value", f"{confidence:.0%} interval"], rows)


def _print_figures(figures: Figures, confidence: float) -> None:
    from spacy_treecrf.cli.shared.tables import percent, table, with_interval

    typer.echo(f"{figures.sequences:,} sequences, {figures.annotated:,} annotated tokens\n")
    rows = [
        (NAMES[name], *with_interval(interval, name != "nll_per_token"))
        for name, interval in figures.figures.items()
    ]
    typer.echo(table(["", "value", f"{confidence:.0%} interval"], rows))
    if figures.calibration.floor is not None:
        typer.echo(
            "calibration error % that honest probabilities would have here by chance: "
            f"{percent(figures.calibration.floor)} if answers were independent"
        )
    if figures.chance is not None:
        typer.echo(
            "the same where answers of a sequence are right or wrong together: "
            f"{percent(figures.chance.mean)} in the mean, and below {percent(figures.chance.high)} "
            f"with a probability of {confidence:.0%}"
        )
    if figures.impossible:
        typer.echo(
            f"{figures.impossible} sequences have a gold annotation that the model's constraints "
            "forbid; they are not part of the NLL"
        )
    if figures.unaligned:
        gold = sum(score.gold for score in figures.per_type.values())
        typer.echo(
            f"{figures.unaligned} of {gold} gold spans do not align with the pipeline's tokens; "
            "they count as missed"
        )
    if figures.unseen:
        names = ", ".join(f"{label} ({n})" for label, n in figures.unseen.items())
        typer.echo(f"labels that the model does not know: {names}")
    if figures.per_type:
        scores = [
            (name or "(no type)", percent(s.precision), percent(s.recall), percent(s.f1), s.gold)
            for name, s in figures.per_type.items()
        ]
        typer.echo("\n" + table(["spans", "precision", "recall", "F1", "gold"], scores))
    labels = figures.confusion.labels
    if len(labels) <= MAX_TABLE:
        counts = figures.confusion.table(labels)
        cells = [(label, *own) for label, own in zip(labels, counts, strict=True)]
        typer.echo("\n" + table(["gold \\ predicted", *labels], cells))
    elif mistakes := figures.confusion.mistakes(MOST_MISTAKES):
        typer.echo("\n" + table(["gold", "predicted", "count"], mistakes))


def _print_comparison(result: Comparison, confidence: float) -> None:
    from spacy_treecrf.cli.shared.tables import p_value, percent, signed_percent, table

    def row(name: str, paired: PairedDifference) -> tuple[str, ...]:
        interval = paired.interval
        bounds = ""
        if interval.low is not None:
            bounds = f"{signed_percent(interval.low)} to {signed_percent(interval.high)}"
        return (
            name,
            percent(paired.a),
            percent(paired.b),
            signed_percent(interval.value),
            bounds,
            p_value(paired.p_value),
        )

    typer.echo(f"{result.sequences:,} sequences, {result.tokens:,} annotated tokens\n")
    rows = [row("token accuracy %", result.token_accuracy)]
    if result.span_f1 is not None:
        rows.append(row("span F1 %", result.span_f1))
    typer.echo(table(["", "A", "B", "B - A", f"{confidence:.0%} interval", "p (bootstrap)"], rows))
    test = result.mcnemar
    typer.echo(
        f"\nMcNemar on tokens: only A right {test.only_a:,}, only B right {test.only_b:,}; "
        f"p = {p_value(test.p_exact)} (exact), {p_value(test.p_chi2)} "
        f"(chi-squared {test.chi2:.2f})"
    )
