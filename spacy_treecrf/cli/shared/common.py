"""Helpers of all commands: errors as one line and an exit code, progress, files, JSON."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TextIO, TypeVar

import typer

from spacy_treecrf.storage.files import check_target, refuse_inputs, replacing

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

FAILED, INTERRUPTED = 1, 130
SHOW_AFTER = 2.0  # seconds after which a progress bar shows


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Make a command report errors in one line; a traceback is for mistakes of ours."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_as_lines():
                result = command(*args, **kwargs)
            if sys.stdout is not None:  # None: closed by the shell
                sys.stdout.flush()  # a full disk shows here, not when the interpreter ends
            return result
        except KeyboardInterrupt:
            say("treecrf: interrupted; files that were there are as before")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of a pipe has seen enough, e.g. head
            _forget_stdout()
            raise typer.Exit(0) from None
        except MemoryError:
            say("treecrf: not enough memory; use less data, or a machine with more of it")
            raise typer.Exit(FAILED) from None
        except OSError as error:
            text = str(error)
            if error.filename is None and not text.startswith("treecrf"):
                text = f"treecrf: cannot write the output: {text}; check free space"
                _forget_stdout()
            say(text if text.startswith("treecrf") else f"treecrf: {text}")
            raise typer.Exit(FAILED) from None
        except (ValueError, ImportError) as error:
            text = str(error)
            if not text.startswith(("treecrf", "[E")):  # ours, or one that spaCy explains
                raise
            say(text)
            raise typer.Exit(FAILED) from None

    return wrapped


def _forget_stdout() -> None:
    """Let what is not yet written go nowhere, or the interpreter would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Say warnings of ours in one line, without the place in the code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_ours(message: Warning | str, *args: Any, **kwargs: Any) -> None:
            if str(message).startswith("treecrf: "):
                say(str(message))
            else:
                show(message, *args, **kwargs)

        warnings.showwarning = show_ours
        yield


def say(message: str) -> None:
    """Print a message to people; what programs read goes to the standard output."""
    typer.echo(message, err=True)


def progress(items: Iterable[T], total: int | None, what: str, unit: str = "it") -> Iterator[T]:
    """The items, with a progress bar if they take long and someone is watching."""
    from tqdm import tqdm

    # disable=None hides the bar where the standard error is no terminal.
    bar = tqdm(items, total=total, desc=what, unit=unit, delay=SHOW_AFTER, disable=None)
    return iter(bar)


@contextlib.contextmanager
def rounds_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that is told how many rounds are done and of how many, and shows it in a bar."""
    from tqdm import tqdm

    with tqdm(total=0, desc=what, unit="round", delay=SHOW_AFTER, disable=None) as bar:

        def tell(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield tell


def resampling_progress(resamples: int) -> Callable[[Iterator[T]], Iterator[T]]:
    return lambda drawn: progress(drawn, resamples, "resampling", "draw")


def print_json(value: Any) -> None:
    typer.echo(to_json(value))


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def refuse_existing(path: Path, force: bool, *inputs: str | Path | None) -> None:
    """Refuse an output that exists or cannot be written, before any work is done for it.

    inputs: What the command reads: none of these may be replaced, also not by --force.
    """
    check_target(path)
    if path.is_file() and not force:
        raise ValueError(f"treecrf: {path} exists; use --force to replace it, or another name")
    refuse_inputs(path, inputs)


def model_input(model: str) -> Path:
    """What a command reads of a model: its file, or the folder of a pipeline."""
    from spacy_treecrf.columnar.model import model_file

    path = model_file(model)
    return path if path.is_file() else Path(model)


@contextlib.contextmanager
def output_text(path: Path | None) -> Iterator[TextIO]:
    """A text file that is written as a whole or not at all; without a path, the standard output."""
    if path is None:
        if sys.stdout is None:  # closed by the shell: >&-
            raise ValueError("treecrf: the standard output is closed; name a file by --output")
        yield sys.stdout
        return
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # which writes what is left, and does not close the file
