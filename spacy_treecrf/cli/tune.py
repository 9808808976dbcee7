"""The command `tune`: good settings for a spaCy config, or for a model of column files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_treecrf.cli.shared.common import (
    INTERRUPTED,
    output_text,
    print_json,
    refuse_existing,
    reports_errors,
    say,
)
from spacy_treecrf.cli.shared.options import Force

if TYPE_CHECKING:
    from spacy_treecrf.tuning.column_plan import ColumnPlan
    from spacy_treecrf.tuning.journal import Journal, Result
    from spacy_treecrf.tuning.search import Plan, RunAll, Trial

EXAMPLES = """\b
Examples:
  spacy-treecrf tune ner.cfg -o best.cfg --train train.spacy --dev dev.spacy \\
      --set components.treecrf.model.leaves=16,64 --set components.treecrf.model.ridge=0.3,1,3
  spacy-treecrf tune ner.cfg -o best.cfg --train train.spacy --folds 5 --random 30 \\
      --set components.treecrf.model.shrinkage=0.1..1.0:log
  spacy-treecrf tune train.conll -o best.treecrf --dev dev.conll --set leaves=16,64 --set rounds=60
  spacy-treecrf tune train.conll -o best.treecrf --folds 5 --set leaves=16,64 \\
      --scheduler tcp://10.0.0.1:8786
Run the same command again to go on after an interruption.
"""
SHOWN = 10


# Many parameters: typer makes an option of each.
# Long: two thirds of it are the signature.
@reports_errors
def tune(
    source: Annotated[
        Path, typer.Argument(help="Config of spaCy, to be trained on --train; or a column file.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Config with the best settings; for a column file, the model."
        ),
    ],
    settings: Annotated[
        list[str],
        typer.Option("--set", help="Setting and values: name=a,b,c or name=low..high[:log]."),
    ],
    train: Annotated[
        Path | None, typer.Option(help="Of a config: training data, .spacy file or folder of them.")
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(help="Held-out data; default: a part of the training data.")
    ] = None,
    hold_out: Annotated[float, typer.Option(help="Share of the training data to hold out.")] = 0.2,
    folds: Annotated[int, typer.Option(min=0, help="Cross-validate by so many folds.")] = 0,
    random: Annotated[
        int, typer.Option(min=0, help="Try so many random combinations; 0: all of them.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of random combinations and held-out parts.")] = 0,
    journal: Annotated[
        Path | None, typer.Option(help="Results so far; default: the output with .jsonl added.")
    ] = None,
    code: Annotated[
        Path | None, typer.Option(help="Python file with functions that the config names.")
    ] = None,
    label_column: Annotated[
        int, typer.Option(help="Of a column file: column of the label, from 1; negative: from end.")
    ] = -1,
    columns: Annotated[
        str, typer.Option(help="Of a column file: what columns are, as in `train`.")
    ] = "",
    window: Annotated[
        int | None, typer.Option(help="Of a column file: positions on both sides that count.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="Of a column file: label that means: not annotated.")
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="Of a column file: what else to know of words, as in `train`."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of column files.")] = "utf-8",
    threads: Annotated[int, typer.Option(min=0, help="Of a column file; 0: all cores.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler: trainings are tasks there.")
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all trials as JSON.")] = False,
) -> None:
    """Try settings by training on one part of the data and scoring on another.

    Of a config, the score is that of spaCy's training: the best step, weighted by
    [training.score_weights]. Of a column file, it is F1 where labels are those of spans, else
    accuracy; the model of the best settings, trained on the whole file, is the output.
    """
    from spacy_treecrf.columnar.word_features import make_word_features
    from spacy_treecrf.tuning.journal import Journal
    from spacy_treecrf.tuning.search import best_of
    from spacy_treecrf.tuning.space import draws, grid, parse_space

    kept = journal or output.with_name(output.name + ".jsonl")
    refuse_existing(output, force, source, train, dev, code, kept)
    space = parse_space(settings)
    _check_parts(folds, dev, hold_out)
    trials = draws(space, random, seed) if random else grid(space)
    parts: dict[str, Any] = {"folds": folds, "hold_out": hold_out, "seed": seed}
    plan: Plan | ColumnPlan
    if train is None:
        read = {"label_column": label_column, "window": window, "unlabelled": unlabelled}
        words = make_word_features(features or [])
        parts |= {"threads": threads, "words": words}
        plan = _column_plan(source, dev, trials, columns, encoding, read, **parts)
    else:
        plan = _config_plan(source, trials, train, dev, code, **parts)
    log = Journal(kept, plan.about())
    if len(log):
        say(f"{kept} holds {len(log)} results, which are used")
    found = _search(plan, max(folds, 1), log, kept, scheduler)
    best = best_of(found)
    _write_best(plan, best.settings, output)
    if as_json:
        print_json({"output": str(output), "best": best.settings, "trials": _as_json(found)})
    else:
        _print(found, list(space))
        typer.echo(f"\nsaved to {output}; all results are in {kept}")


def _config_plan(
    config: Path,
    trials: list[dict[str, Any]],
    train: Path,
    dev: Path | None,
    code: Path | None,
    **parts: Any,
) -> Plan:
    from spacy.util import import_file

    from spacy_treecrf.tuning.search import Plan
    from spacy_treecrf.tuning.training import check_names, load_config

    if code is not None:
        import_file("treecrf_tune_code", code)
    base = load_config(config)
    check_names(base, list(trials[0]))
    return Plan(base, trials, train, dev, code=code, **parts)


def _column_plan(
    data: Path,
    dev: Path | None,
    trials: list[dict[str, Any]],
    columns: str,
    encoding: str,
    read: dict[str, Any],
    **parts: Any,
) -> ColumnPlan:
    """The plan to tune on a column file. read: further arguments of `make_template`."""
    from spacy_treecrf.columnar.files import read_column_file
    from spacy_treecrf.columnar.template import make_template, parse_kinds
    from spacy_treecrf.tuning.column_plan import ColumnData, ColumnPlan, check_settings

    if data.suffix in (".cfg", ".spacy"):
        raise ValueError(
            f"treecrf: {data} is no column file; to tune a config of spaCy, name the config first "
            "and its training data by --train"
        )
    check_settings(list(trials[0]))
    file = read_column_file(data, encoding)
    template = make_template(file, kinds=parse_kinds(columns), **read)
    words = parts["words"]
    training, held_out = ColumnData.of(file, template, words), None
    if dev is not None:
        held_out = ColumnData.of(read_column_file(dev, encoding), template, words)
    return ColumnPlan(template, trials, training, held_out, **parts)


def _write_best(plan: Plan | ColumnPlan, settings: dict[str, Any], output: Path) -> None:
    from spacy_treecrf.tuning.search import Plan

    if not isinstance(plan, Plan):
        plan.best_model(settings).save(output)
        return
    from spacy_treecrf.tuning.training import with_settings

    with output_text(output) as file:
        file.write(with_settings(plan.config, settings).to_str(interpolate=False))


def _check_parts(folds: int, dev: Path | None, hold_out: float) -> None:
    if folds == 1 or (folds and dev):
        raise ValueError("treecrf: --folds needs 2 or more, and no --dev")
    if not 0.0 < hold_out < 1.0:
        raise ValueError(f"treecrf: --hold-out is {hold_out}; use a number between 0 and 1")


def _search(
    plan: Plan | ColumnPlan, n_folds: int, log: Journal, kept: Path, scheduler: str | None
) -> list[Trial]:
    """All trials, with a progress bar; what is done before Ctrl-C stays in the journal `kept`.

    scheduler: The address of the cluster that trains; None: this process does.
    """
    from spacy_treecrf.tuning.search import search

    with _run_all(scheduler) as run_all, _Bar(len(plan.trials) * n_folds) as bar:
        try:
            return search(plan, log, bar, run_all)
        except KeyboardInterrupt:
            say(f"treecrf: interrupted; {kept} holds {len(log)} results, run it again to go on")
            raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _run_all(scheduler: str | None) -> Iterator[RunAll | None]:
    """What runs trainings on a cluster, if one is meant."""
    if scheduler is None:
        yield None
        return
    from spacy_treecrf.dask import independent_calls

    with independent_calls(scheduler) as run_all:
        yield run_all


class _Bar:
    """A progress bar that shows the best score so far."""

    def __init__(self, total: int) -> None:
        from tqdm import tqdm

        self.bar = tqdm(total=total, desc="tuning", unit="training", disable=None)
        self.best: float | None = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def __call__(self, result: Result | None) -> None:
        if result is not None and result.score is not None:
            self.best = max(result.score, self.best or 0.0)
            self.bar.set_postfix({"best": f"{self.best:.4f}"}, refresh=False)
        self.bar.update()


def _print(trials: list[Trial], names: list[str]) -> None:
    from spacy_treecrf.cli.shared.tables import table

    rows = []
    for trial in trials[:SHOWN]:
        score = "failed" if trial.score is None else f"{trial.score:.4f}"
        spread = "" if trial.spread is None else f"{trial.spread:.4f}"
        rows.append([score, spread, *(trial.settings[name] for name in names)])
    short = [name.removeprefix("components.") for name in names]
    typer.echo(table(["score", "deviation", *short], rows))
    for trial in trials:
        if trial.error:
            typer.echo(f"failed: {trial.settings}: {trial.error}")


def _as_json(trials: list[Trial]) -> list[dict[str, Any]]:
    return [
        {
            "settings": trial.settings,
            "score": trial.score,
            "deviation": trial.spread,
            "folds": [result.score for result in trial.results],
            "error": trial.error,
        }
        for trial in trials
    ]
