"""All commands together. They import what they need when they run, so that help comes at once."""

from __future__ import annotations

from typing import Annotated

import typer

from spacy_treecrf import __version__
from spacy_treecrf.cli import (
    average,
    calibrate,
    cross_calibrate,
    distill,
    distribute,
    evaluate,
    explain,
    init,
    inspect_model,
    plot,
    pronounce,
    prune,
    report,
    serve,
    settings,
    tag,
    train,
    tune,
    warmup,
)
from spacy_treecrf.cli.corpora import audit, convert, corpus, lists, suggest, vectors

app = typer.Typer(
    name="spacy-treecrf",
    help="Gradient-tree-boosted conditional random fields for sequence labelling.",
    epilog=(
        "\b\n"
        "Start with a column file (a token per line, its label last, blank lines between):\n"
        "  spacy-treecrf train train.conll --dev dev.conll -o model.treecrf\n"
        "  spacy-treecrf evaluate model.treecrf test.conll\n"
        "  spacy-treecrf tag model.treecrf new.conll\n"
        "\n\b\n"
        "Exit codes: 0 done, 1 an error that is said, 2 wrong usage, 130 interrupted by Ctrl-C."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("init", epilog=init.EXAMPLES)(init.init)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command(
    "distribute",
    epilog=distribute.EXAMPLES,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(distribute.distribute)
app.command("tag", epilog=tag.EXAMPLES)(tag.tag)
app.command("pronounce", epilog=pronounce.EXAMPLES)(pronounce.pronounce)
app.command("evaluate", epilog=evaluate.EVALUATE_EXAMPLES)(evaluate.evaluate)
app.command("compare", epilog=evaluate.COMPARE_EXAMPLES)(evaluate.compare)
app.command("inspect", epilog=inspect_model.EXAMPLES)(inspect_model.inspect_model)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("suggest", epilog=suggest.EXAMPLES)(suggest.suggest)
app.command("plot", epilog=plot.EXAMPLES)(plot.plot)
app.command("average", epilog=average.EXAMPLES)(average.average)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command("cross-calibrate", epilog=cross_calibrate.EXAMPLES)(cross_calibrate.cross_calibrate)
app.command("distill", epilog=distill.EXAMPLES)(distill.distill)
app.command("prune", epilog=prune.EXAMPLES)(prune.prune)
app.command("convert", epilog=convert.EXAMPLES)(convert.convert)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("settings", epilog=settings.EXAMPLES)(settings.settings)
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("lists", epilog=lists.EXAMPLES)(lists.lists)
app.command("vectors", epilog=vectors.EXAMPLES)(vectors.vectors)
app.command("warmup", epilog=warmup.EXAMPLES)(warmup.warmup)
app.add_typer(corpus.app, name="corpus")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show it.")
    ] = False,
) -> None:
    """Options of all commands."""


def main() -> None:
    app(prog_name="spacy-treecrf")
