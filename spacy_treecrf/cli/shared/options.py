"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(help="Column file with labels, or .spacy file for a spaCy pipeline.")
]
Resamples = Annotated[
    int, typer.Option(min=0, help="Bootstrap resamples of the sequences; 0: no intervals.")
]
Confidence = Annotated[float, typer.Option(help="Of the intervals.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the resamples.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Encoding = Annotated[str, typer.Option(help="Encoding of column files and files of text.")]
Threads = Annotated[int, typer.Option(min=0, help="0: all cores.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
ForF1 = Annotated[
    bool,
    typer.Option("--for-f1", help="Let a pipeline set the spans that serve F1 best from now on."),
]
