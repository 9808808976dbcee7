"""The command `train`: a model from column files, without a config."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_treecrf.cli.shared.common import (
    INTERRUPTED,
    print_json,
    progress,
    refuse_existing,
    reports_errors,
    say,
)
from spacy_treecrf.cli.shared.options import Force
from spacy_treecrf.cli.shared.setting_options import takes_settings
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.storage.files import refuse_inputs

if TYPE_CHECKING:
    from spacy_treecrf.columnar.files import ColumnFile
    from spacy_treecrf.columnar.model import ColumnModel
    from spacy_treecrf.columnar.template import Template
    from spacy_treecrf.columnar.word_features import WordFeatures

EXAMPLES = """\b
Examples:
  spacy-treecrf train train.conll -o model.treecrf
  spacy-treecrf train train.conll --dev dev.conll -o model/ --rounds 200 --set trim=0
  spacy-treecrf train eng.train -o ner.treecrf --encoding latin-1 --columns 3=skip
  spacy-treecrf train train.conll -o ner.treecrf --features clusters=en \\
      --features vectors=en_core_web_md --features gazetteer.city=cities.txt
  spacy-treecrf train taught.conll --soft --set soft_labels=distill -o model.treecrf
  spacy-treecrf train train.conll -o model.treecrf --resume   # after Ctrl-C
  spacy-treecrf train corrected.conll -o model.treecrf --resume --grow --rounds 150
"""
# Settings that have an option of their own.
OPTIONS = (
    "rounds",
    "linear_rounds",
    "leaves",
    "min_count",
    "min_rows",
    "shrinkage",
    "penalty",
    "ridge",
    "subsample",
    "colsample",
    "family",
    "order",
    "constraints",
    "patience",
    "monitor",
    "seed",
    "threads",
)
Data = tuple[list[list[dict[str, Any]]], Sequence[Sequence[Any]]]


# Many parameters: each is an option, which typer reads from the signature.
# Long: half of it is the signature.
@reports_errors
@takes_settings(Settings, OPTIONS)
def train(
    *,
    # not Paths, which would lose slashes
    data: Annotated[str, typer.Argument(help="Column file; - is the standard input.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Model file, or a folder ending in /.")
    ],
    dev: Annotated[
        str | None, typer.Option(help="Held-out file: stop early, keep the best round.")
    ] = None,
    label_column: Annotated[
        int, typer.Option(help="Column of the label, from 1; negative: from the end.")
    ] = -1,
    columns: Annotated[
        str,
        typer.Option(
            help="What columns are: word, letter, value, number, skip; e.g. 2=number,3=skip. By "
            "default the first is word (or letter), the others are values."
        ),
    ] = "",
    window: Annotated[
        int | None,
        typer.Option(help="Positions on both sides that count; default: 2, for letters 6."),
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="Label that means: this token is not annotated.")
    ] = None,
    soft: Annotated[
        bool,
        typer.Option(
            "--soft",
            help="Labels of DATA may have weights: B-PER:0.7|O:0.3, or B-PER:0.5. The setting "
            "soft_labels says what they mean.",
        ),
    ] = False,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="What else to know of words: clusters=LANGUAGE, vectors=PIPELINE or "
            "gazetteer.NAME=FILE; may be repeated. The model keeps it."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
    settings: dict[str, Any],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the model that the output holds, with its settings; --rounds, which "
            "is the total with those that are done, and --threads may change.",
        ),
    ] = False,
    grow: Annotated[
        bool,
        typer.Option(
            "--grow",
            help="With --resume: DATA may be new; words and other features that the model does "
            "not know are learned too, and all settings that are given count.",
        ),
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler: train there. DATA and --dev may then be globs in "
            "quotes, of files that all workers see. The model is the same."
        ),
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model on a column file: a token per line with its columns and its label.

    Sequences are separated by blank lines. Ctrl-C saves the rounds that are done.
    """
    from spacy_treecrf.columnar.files import read_column_file
    from spacy_treecrf.columnar.model import model_file
    from spacy_treecrf.columnar.template import make_template, parse_kinds
    from spacy_treecrf.columnar.training import TrainingStopped, fit
    from spacy_treecrf.columnar.word_features import make_word_features

    if grow and not resume:
        raise ValueError("treecrf: --grow is for models that go on with --resume; give both")
    Settings(**settings)  # so that what does not go together is refused before any work
    target = model_file(output)
    started = _model_to_resume(target) if resume else None
    if target != Path(output):  # a folder was asked for
        target.parent.mkdir(parents=True, exist_ok=True)
    refuse_existing(target, force or resume, data, dev)
    if scheduler is not None:
        _refuse_on_cluster(features, encoding, resume, soft)
        options = {"label_column": label_column, "kinds": parse_kinds(columns)}
        options |= {"window": window, "unlabelled": unlabelled}
        _train_on_cluster(scheduler, (data, dev), options, settings, target, as_json)
        return
    file = read_column_file(Path(data), encoding)
    if started is None:
        template = make_template(
            file,
            label_column=label_column,
            kinds=parse_kinds(columns),
            window=window,
            unlabelled=unlabelled,
        )
        words = make_word_features(features or [])
    else:
        template, words = started.template, started.words
    training = _features(template, words, file, soft)
    held_out = _features(template, words, read_column_file(Path(dev), encoding)) if dev else None
    stopped = False
    watched = sys.stderr.isatty()
    if watched:  # the bar begins when all features are known and the kernels compiled
        say(f"learning from {sum(map(len, file.sequences)):,} tokens ...")
    try:
        model = fit(template, training, held_out, settings, started, watched, words, grow)
    except TrainingStopped as interrupt:
        stopped = True
        if not interrupt.model.crf.potentials.rounds:
            say("treecrf: interrupted before the first round was done; nothing was saved")
            raise typer.Exit(INTERRUPTED) from None
        model = interrupt.model
    model.save(target)
    n_tokens = sum(map(len, file.sequences))
    _report(model, target, (len(file.sequences), n_tokens), stopped, as_json)
    if stopped:
        say(f"treecrf: interrupted; {target} holds the rounds so far, --resume goes on")
        raise typer.Exit(INTERRUPTED)


def _model_to_resume(target: Path) -> ColumnModel:
    from spacy_treecrf.columnar.model import ColumnModel
    from spacy_treecrf.storage import container

    if not target.is_file():
        raise ValueError(f"treecrf: --resume found no model {target}; leave it out")
    return ColumnModel.from_state(container.read(target))


def _features(
    template: Template, words: WordFeatures | None, file: ColumnFile, soft: bool = False
) -> Data:
    from spacy_treecrf.columnar.model import features_of
    from spacy_treecrf.columnar.soft_labels import with_weights

    sequences, labels = template.split(file, need_labels=True)
    assert labels is not None
    weighed = with_weights(labels, file) if soft else labels
    features = features_of(template, words, sequences, file.place)
    return list(progress(features, len(sequences), f"reading {file.name}", "seq")), weighed


def _refuse_on_cluster(features: list[str] | None, encoding: str, resume: bool, soft: bool) -> None:
    for given, option in ((features, "--features"), (resume, "--resume"), (soft, "--soft")):
        if given:
            raise ValueError(f"treecrf: {option} does not go with --scheduler; leave one out")
    if encoding.lower() not in ("utf-8", "utf8"):
        raise ValueError("treecrf: with --scheduler, files must be in utf-8; convert them")


def _train_on_cluster(
    scheduler: str,
    files: tuple[str, str | None],
    options: dict[str, Any],
    settings: dict[str, Any],
    target: Path,
    as_json: bool,
) -> None:
    """Train on the workers of a Dask cluster.

    files: The training data and the held-out data, which may be globs.
    options: The arguments that `make_template` takes to say what the columns are.
    """
    from spacy_treecrf.columnar.training import TrainingStopped
    from spacy_treecrf.dask.column_training import fit_on_cluster, input_files, template_of

    data, held_out = files
    refuse_inputs(target, input_files(data, held_out))
    template = template_of(data, **options)
    watched = sys.stderr.isatty()
    try:
        fitted = fit_on_cluster(template, data, held_out, scheduler, settings, watched)
    except TrainingStopped as interrupt:
        interrupt.model.save(target)
        say(f"treecrf: interrupted; {target} holds the rounds so far")
        raise typer.Exit(INTERRUPTED) from None
    fitted.model.save(target)
    _report(fitted.model, target, (fitted.n_sequences, fitted.n_tokens), False, as_json)


def _report(
    model: ColumnModel, target: Path, size: tuple[int, int], stopped: bool, as_json: bool
) -> None:
    """Print what was learned. size: How many sequences and tokens it was learned from."""
    curve, crf = model.curve, model.crf
    best = crf.potentials.rounds
    result: dict[str, Any] = {
        "model": str(target),
        "sequences": size[0],
        "tokens": size[1],
        "labels": len(crf.labels),
        "features": len(crf.columns.feature_names),
        "columns": dict(enumerate(model.template.kinds, start=1)),
        "rounds": best,
        "trees": crf.potentials.n_trees,
        "log_likelihood": curve.at(curve.log_likelihood, best),
        "held_out_log_likelihood": curve.at(curve.held_out_log_likelihood, best),
        "held_out_accuracy": curve.at(curve.held_out_accuracy, best),
        "held_out_f1": curve.at(curve.held_out_f1, best),
        "rounds_tried": len(curve.log_likelihood),
        "seconds": curve.seconds[-1] if curve.seconds else 0.0,
        "interrupted": stopped,
    }
    if as_json:
        print_json(result)
        return
    kinds = ", ".join(f"{i} {kind}" for i, kind in result["columns"].items())
    typer.echo(f"{result['sequences']:,} sequences, {result['tokens']:,} tokens; columns: {kinds}")
    typer.echo(
        f"{result['labels']} labels, {result['features']:,} features, {best} rounds, "
        f"{result['trees']:,} trees, {result['seconds']:.1f} s"
    )
    if result["log_likelihood"] is not None:
        typer.echo(f"training log-likelihood per token: {result['log_likelihood']:.4f}")
    if curve.held_out_accuracy:
        typer.echo(_kept(result, crf.settings.monitor, spans=bool(curve.held_out_f1)))
    if result["held_out_accuracy"] is not None:
        typer.echo(
            f"held-out: token accuracy {result['held_out_accuracy']:.2%}, log-likelihood per token "
            f"{result['held_out_log_likelihood']:.4f}"
        )
    typer.echo(f"saved to {target}")


def _kept(result: dict[str, Any], monitor: str, spans: bool) -> str:
    """Which round early stopping has chosen, and by which figure."""
    from spacy_treecrf.engine.boosting.rounds import kept_line

    if monitor == "auto":
        monitor = "f1" if spans else "log_likelihood"
    value = result[f"held_out_{monitor}"]
    return kept_line(result["rounds"], result["rounds_tried"], monitor, value)
