"""The command `distribute`: `spacy train` on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import INTERRUPTED, reports_errors, say
from spacy_treecrf.cli.shared.pipeline_folders import refuse_folder

EXAMPLES = """\b
Examples:
  spacy-treecrf distribute ner.cfg -o out --paths.train "corpus/*.spacy" --paths.dev dev.spacy
  spacy-treecrf distribute ner.cfg -o out --paths.train corpus/ --paths.dev dev.spacy \\
      --scheduler tcp://10.0.0.1:8786
"""


# Many parameters: each is an option, which typer reads from the signature.
@reports_errors
def distribute(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config, as `spacy train` takes it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model-best and model-last.")
    ],
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler: train there.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Workers to start on this machine; default: one for each core."),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option("--code", "-c", help="Python file of registered functions; workers see it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace models that are there.")] = False,
) -> None:
    """Train a pipeline as `spacy train` does, its docs spread over workers: the model is the same.

    Other options override the config, as --paths.train; that may be a file, a folder, a glob in
    quotes or an address that fsspec knows, which all workers see. The docs of dev stay here.
    """
    from spacy.cli._util import import_code, parse_config_overrides
    from spacy.util import get_sourced_components, load_config

    if scheduler is not None and workers is not None:
        raise ValueError("treecrf: --workers are started here, and not with --scheduler; use one")
    if not config.is_file():
        raise ValueError(f"treecrf: there is no config {config}; `spacy-treecrf init` writes one")
    overrides = parse_config_overrides(context.args)
    import_code(code)
    try:
        from spacy_treecrf.distribute.training import ModelsInterrupted, Place, train_on_cluster
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed", "fsspec"):
            raise
        raise ModuleNotFoundError(
            f"treecrf: distribute needs {error.name}, which is not installed; install "
            "spacy-treecrf[dask]",
            name=error.name,
        ) from error
    filled = load_config(config, overrides=overrides, interpolate=False)
    sourced = get_sourced_components(filled.interpolate())
    refuse_folder(output, force, [block["source"] for block in sourced.values()])
    output.mkdir(parents=True, exist_ok=True)
    try:
        train_on_cluster(filled, output, Place(scheduler, workers), code)
    except ModelsInterrupted as interrupt:
        say(_interrupted(output, interrupt.whole))
        raise typer.Exit(INTERRUPTED) from None
    finally:
        with contextlib.suppress(OSError):
            output.rmdir()  # if nothing was written
    typer.echo(f"saved to {output / 'model-last'}")


def _interrupted(output: Path, whole: list[str]) -> str:
    """What a folder holds after Ctrl-C."""
    held = " and ".join(sorted(whole)) or "no whole model"
    return f"treecrf: interrupted; {output} holds {held} of this training, and none of before"
