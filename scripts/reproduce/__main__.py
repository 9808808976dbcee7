"""Run experiments and write docs/results.md: python -m scripts.reproduce."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import spacy_treecrf
from scripts.reproduce.report import Report, document, load, store
from spacy_treecrf.cli.shared.common import reports_errors, say

# In the order of the page: the name of each experiment, its module, and its function of (quick,
# folder), which puts pictures into the folder and returns a Report.
EXPERIMENTS = {
    "hao-3.4": ("treecrf", "run_shrinkage"),
    "hao-3.5": ("treecrf", "run_rivals"),
    "hao-3.6": ("times", "run"),
    "hao-4.1": ("missing", "run"),
    "hao-5.3": ("future", "run_starts"),
    "hao-5.4": ("future", "run_bits"),
    "hao-5.5": ("future", "run_stress"),
    "secoc-figures": ("secoc", "run"),
    "kersting-2": ("conjugate", "run_salesman"),
    "kersting-3": ("conjugate", "run_protein"),
    "chen-1": ("chen_ner", "run"),
    "chen-2": ("chen_ocr", "run"),
    "chen-figure-1": ("chen_convergence", "run"),
}


@reports_errors
def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments, such as hao-3.4; all of them if none is named."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Reduced, in minutes, into metrics/ instead of docs/."),
    ] = False,
) -> None:
    """Run experiments of the papers and write our figures beside the published ones."""
    unknown = set(names or []) - set(EXPERIMENTS)
    if unknown:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(f"treecrf: no experiment {', '.join(sorted(unknown))}; there are {known}")
    page = Path("metrics" if quick else "docs", "results.md")
    for name in names or EXPERIMENTS:
        say(f"{name}:")
        report = run(name, quick, page.with_suffix(""))
        typer.echo(f"\n{report.text()}\n")
    write_page(page)
    say(f"wrote {page}")


def run(name: str, quick: bool, folder: Path) -> Report:
    """Run one experiment and store what it found."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    module, function = EXPERIMENTS[name]
    report = getattr(import_module(f"scripts.reproduce.{module}"), function)(quick, folder)
    report = replace(
        report,
        seconds=round(time.perf_counter() - began, 1),
        quick=quick,
        version=spacy_treecrf.__version__,
    )
    store(report, folder / f"{name}.json")
    return report


def write_page(page: Path) -> None:
    page.write_text(document(stored(page.with_suffix("")), page.stem), encoding="utf-8")


def stored(folder: Path) -> dict[str, Report]:
    """The reports that the experiments stored when they last ran, in the order of the page."""
    paths = {name: folder / f"{name}.json" for name in EXPERIMENTS}
    return {name: load(path) for name, path in paths.items() if path.exists()}


if __name__ == "__main__":
    typer.run(main)
