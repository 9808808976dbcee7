"""The command `inspect`: what a model has learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_treecrf.cli.shared.common import print_json, reports_errors
from spacy_treecrf.cli.shared.options import Json

if TYPE_CHECKING:
    from spacy_treecrf.evaluation.inspection import Inspection, Summary

EXAMPLES = """\b
Examples:
  spacy-treecrf inspect model.treecrf
  spacy-treecrf inspect training/ner/model-best --top 20
  spacy-treecrf inspect model.treecrf --json | jq .top_features
"""
MOST_ABSENT = 3  # absent features of a path that are shown


@reports_errors
def inspect_model(
    model: Annotated[str, typer.Argument(help="Model file, spaCy pipeline folder or package.")],
    top: Annotated[int, typer.Option(min=1, help="Length of the lists.")] = 10,
    as_json: Json = False,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
) -> None:
    """Show sizes, labels, most used features, strongest transitions, example paths of trees."""
    from spacy_treecrf.columnar.model import model_file
    from spacy_treecrf.evaluation.inspection import Inspection, inspection_of
    from spacy_treecrf.taggers.loading import load_model

    learned, column_model = load_model(model, pipe=pipe)
    found = inspection_of(learned, top)
    size = _bytes(model_file(model))
    kinds = list(column_model.template.kinds) if column_model else None
    if as_json:
        print_json({"model": model, "bytes": size, "file_columns": kinds, **found.to_json()})
        return
    if size is not None:
        typer.echo(f"{model}: {size / 1e6:,.1f} MB")
    if kinds is not None:
        names = ", ".join(f"{i} {kind}" for i, kind in enumerate(kinds, start=1))
        typer.echo(f"columns of the file: {names}")
    _print_summary(found)
    if isinstance(found, Inspection):
        _print_learned(found)


def _bytes(path: Path) -> int | None:
    """The size of a file, or of all files in a folder, in bytes."""
    if path.is_file():
        return path.stat().st_size
    folder = path.parent if path.name == "model.treecrf" else path
    if not folder.is_dir():
        return None
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _print_summary(found: Summary) -> None:
    typer.echo(
        f"{found.kind}, {found.rounds} rounds\n"
        f"{found.features:,} features in {found.columns} columns, {found.numeric_columns} numeric "
        "columns"
    )
    labels = ", ".join(found.labels[:40]) + (", ..." if len(found.labels) > 40 else "")
    typer.echo(f"{len(found.labels)} labels: {labels}")
    changed = ", ".join(f"{name}={value}" for name, value in found.changed_settings.items())
    typer.echo(f"settings: {changed}")
    for i, words in enumerate(found.detectors, start=1):
        typer.echo(f"detector {i}: {words}")


def _print_learned(found: Inspection) -> None:
    from spacy_treecrf.cli.shared.tables import table

    typer.echo(
        f"{found.trees:,} trees, {found.leaves:,} leaves, {found.linear_weights:,} linear weights"
    )
    for title, uses in (("column", found.top_columns), ("feature", found.top_features)):
        if uses:
            rows = [(use.name, f"{use.gain:.1f}", use.splits) for use in uses]
            typer.echo("\n" + table([title, "gain", "splits"], rows))
    if found.top_weights:
        weights = [(own.feature, own.label, f"{own.weight:+.2f}") for own in found.top_weights]
        typer.echo("\n" + table(["linear weight of", "for", ""], weights))
    for title, transitions in (
        ("likely transition", found.likely_transitions),
        ("unlikely transition", found.unlikely_transitions),
    ):
        if transitions:
            pairs = [
                (f"{own.previous} -> {own.label}", f"{own.weight:+.2f}") for own in transitions
            ]
            typer.echo("\n" + table([title, ""], pairs))
    if found.forbidden_transitions:
        typer.echo(f"{found.forbidden_transitions} transitions are ruled out by constraints")
    if found.paths:
        typer.echo("\nstrongest paths of trees")
        for path in found.paths:
            tests = _shortened(path.tests)
            typer.echo(f"  {path.value:+.2f} for {path.label} (round {path.round}): {tests}")


def _shortened(tests: list[str]) -> str:
    """The tests that hold, and the first that do not: trees rule out many features on the way."""
    absent = [test for test in tests if test.startswith("not ")]
    shown = [test for test in tests if not test.startswith("not ")] + absent[:MOST_ABSENT]
    more = len(absent) - MOST_ABSENT
    return " and ".join(shown) + (f" and {more} more absent" if more > 0 else "")
