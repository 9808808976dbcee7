"""The process that annotates for `serve`, which starts it; nobody calls it by hand."""

from __future__ import annotations

import sys

import typer

from spacy_treecrf.cli.shared.common import reports_errors


def command(model: str, pipe: str | None, threads: int) -> list[str]:
    """What to run for the process that annotates with this pipeline."""
    named = [] if pipe is None else ["--pipe", pipe]
    return [sys.executable, "-m", __name__, "--threads", str(threads), *named, "--", model]


@reports_errors
def annotate(model: str, pipe: str | None = None, threads: int = 0) -> None:
    from spacy_treecrf.serve.child import run

    run(model, pipe, threads)


if __name__ == "__main__":
    typer.run(annotate)
