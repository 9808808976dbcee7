"""What all commands share: errors as one line and an exit code, progress, files, JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TextIO, TypeVar

import typer

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

FAILED, INTERRUPTED = 1, 130
SHOW_AFTER = 2.0  # seconds; what is done by then needs no progress bar


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Say in one line what went wrong; a traceback is for mistakes of ours."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            say("treecrf: interrupted; files that were there are as before")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of a pipe has seen enough, e.g. head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except MemoryError:
            say("treecrf: not enough memory; use less data, or a machine with more of it")
            raise typer.Exit(FAILED) from None
        except OSError as error:
            text = str(error)
            say(text if text.startswith("treecrf") else f"treecrf: {text}")
            raise typer.Exit(FAILED) from None
        except (ValueError, ImportError) as error:
            text = str(error)
            if not text.startswith(("treecrf", "[E")):  # ours, or one that spaCy explains
                raise
            say(text)
            raise typer.Exit(FAILED) from None

    return wrapped


def say(message: str) -> None:
    """To people; what programs read goes to the standard output."""
    typer.echo(message, err=True)


def progress(items: Iterable[T], total: int | None, what: str, unit: str = "it") -> Iterator[T]:
    """A bar for what takes long, if someone is watching."""
    from tqdm import tqdm

    # disable=None: where the standard error is no terminal
    bar = tqdm(items, total=total, desc=what, unit=unit, delay=SHOW_AFTER, disable=None)
    return iter(bar)


def resampling_progress(resamples: int) -> Callable[[Iterator[T]], Iterator[T]]:
    return lambda drawn: progress(drawn, resamples, "resampling", "draw")


def print_json(value: Any) -> None:
    typer.echo(to_json(value))


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def refuse_existing(path: Path, force: bool) -> None:
    """Before any work is done for it."""
    if path.is_dir():
        raise ValueError(f"treecrf: the output {path} is a folder; name a file")
    if path.exists() and not force:
        raise ValueError(f"treecrf: {path} exists; use --force to replace it, or another name")
    if not path.parent.is_dir():
        raise ValueError(f"treecrf: the folder {path.parent} does not exist; create it first")


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A path to write to that takes the place of `path` in the end, and only if all went well."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".treecrf-{secrets.token_hex(8)}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


@contextlib.contextmanager
def output_text(path: Path | None) -> Iterator[TextIO]:
    """The file, all or nothing; the standard output without one."""
    if path is None:
        yield sys.stdout
        return
    with beside(path) as temporary, temporary.open("x", encoding="utf-8", newline="\n") as file:
        yield file
