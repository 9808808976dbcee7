"""Parts of the data: what users pass, and how a worker reads one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from spacy_treecrf.columnar.files import ColumnFile, parse_column_file
from spacy_treecrf.columnar.model import features_of
from spacy_treecrf.columnar.template import Template, make_template
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences, checked

PARTS = (
    "use a dask bag of (X, y) sequences, a list of delayed (X, y) lists, or paths of column files "
    "or .spacy files"
)
PAIRS, LISTS, COLUMNS, DOCS = "pairs", "lists", "columns", "docs"
DOC_FILE = ".spacy"
Labelled = tuple[FeatureSequences, LabelSequences]


@dataclass(frozen=True)
class Part:
    """A part, not yet read: `source` is a path, or a delayed object that a task is given."""

    name: str  # for error messages
    kind: str  # PAIRS, LISTS, COLUMNS or DOCS
    source: Any
    template: Template | None = None  # of files
    task: str | None = None  # of docs: which annotation their labels are
    share: tuple[int, int] = (0, 1)  # which of how many equal shares of its sequences
    spill: str | None = None  # the folder, on the worker, for arrays of the rows of its training

    def shares(self, n: int) -> list[Part]:
        """The part as n parts, each of which is read by itself."""
        if n == 1:
            return [self]
        name = f"{self.name} (share {{}} of {n})"
        return [replace(self, name=name.format(i + 1), share=(i, n)) for i in range(n)]

    def read(self, value: Any) -> Labelled:
        """X and y of the part; `value` is what its source has become where the task runs.

        A part may be empty.
        """
        with naming(self.name):
            X, y = self._pairs(value)
            if isinstance(X, Sequence) and isinstance(y, Sequence) and not len(X) + len(y):
                return [], []
            X, y = checked(X, y, "X", "y")
            i, n = self.share
            some = slice(len(X) * i // n, len(X) * (i + 1) // n)
            return X[some], y[some]

    def _pairs(self, value: Any) -> tuple[Any, Any]:
        if self.kind == COLUMNS:
            assert self.template is not None
            return column_data(self.template, read_columns(self.source))
        if self.kind == DOCS:
            from spacy_treecrf.dask.doc_parts import read_annotated

            assert self.task is not None
            assert self.template is not None
            return read_annotated(self.source, self.task, self.template)
        if self.kind == PAIRS:
            pairs = [_pair(pair, "a sequence of the bag") for pair in value]
            return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return _pair(value, "the part")


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"treecrf: {what} is a {type(value).__name__}; expected a pair (X, y)")
    return value[0], value[1]


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Name the part in errors about what it holds."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        message = str(error).removeprefix("treecrf: ")
        raise ValueError(f"treecrf: part {part}: {message}") from error


def read_columns(path: str) -> ColumnFile:
    """A column file, wherever it is."""
    import fsspec

    with fsspec.open(path, "rb") as file:
        return parse_column_file(file.read(), path)


def column_data(template: Template, file: ColumnFile) -> Labelled:
    """Feature dicts and labels of a column file."""
    if not file.sequences:
        return [], []
    sequences, labels = template.split(file, need_labels=True)
    assert labels is not None
    return list(features_of(template, None, sequences, file.place)), labels


def list_parts(
    given: Any, name: str, template: Template | None = None, task: str | None = None
) -> list[Part]:
    """The parts that a user passed. name: that of the argument, for messages."""
    if isinstance(given, (str, bytes)) or hasattr(given, "__fspath__"):
        given = [given]
    if isinstance(given, (list, tuple)) and given and all(map(_is_path, given)):
        return _files([str(one) for one in given], name, template, task)
    if task is not None:
        raise ValueError(f"treecrf: task is {task!r}, and {name} names no files; {_FILES_OF_TASK}")
    if hasattr(given, "to_delayed"):
        delayed = given.to_delayed()
        return _numbered(delayed, PAIRS, name)
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"treecrf: {name} is a {type(given).__name__}; {PARTS}")
    if not given:
        raise ValueError(f"treecrf: {name} holds no parts; pass at least one")
    if all(hasattr(one, "__dask_graph__") or isinstance(one, tuple) for one in given):
        return _numbered(given, LISTS, name)
    raise ValueError(f"treecrf: {name} holds a {type(given[0]).__name__}; {PARTS}")


_FILES_OF_TASK = "a task says what the labels of .spacy files are: leave it out for other parts"


def _is_path(value: Any) -> bool:
    return isinstance(value, str) or hasattr(value, "__fspath__")


def _numbered(sources: Sequence[Any], kind: str, name: str) -> list[Part]:
    return [Part(f"{name}[{i}]", kind, source) for i, source in enumerate(sources)]


def file_paths(given: list[str], name: str) -> list[str]:
    """The files that paths and globs mean, those of each in order. name: see `list_parts`"""
    import fsspec

    paths: list[str] = []
    for one in given:
        try:
            files = fsspec.open_files(one, "rb")
        except (OSError, ValueError, ImportError) as error:
            raise ValueError(f"treecrf: {name}: cannot look for {one!r}: {error}") from error
        if not files:
            raise ValueError(f"treecrf: {name}: no file is called {one!r}; correct the path")
        paths += sorted(file.full_name for file in files)
    return paths


def _files(given: list[str], name: str, template: Template | None, task: str | None) -> list[Part]:
    paths = file_paths(given, name)
    if task is not None or any(path.endswith(DOC_FILE) for path in paths):
        return _doc_files(paths, template, task)
    if template is None:
        with naming(paths[0]):
            template = make_template(read_columns(paths[0]))
    return [Part(path, COLUMNS, path, template) for path in paths]


def _doc_files(paths: list[str], template: Template | None, task: str | None) -> list[Part]:
    """Parts of .spacy files, all of them for one task."""
    others = [path for path in paths if not path.endswith(DOC_FILE)]
    if others and task is not None:
        raise ValueError(f"treecrf: part {others[0]} is no .spacy file; {_FILES_OF_TASK}")
    if others:
        raise ValueError(
            f"treecrf: part {others[0]} is no .spacy file, and other parts are; use files of one "
            "kind"
        )
    if task is None:
        raise ValueError(
            f"treecrf: part {paths[0]} is a .spacy file, and no task says what its labels are; "
            "name it, e.g. fit(..., task='ents')"
        )
    from spacy_treecrf.dask.doc_parts import WORDS, check_template
    from spacy_treecrf.pipeline.tasks import make_task

    make_task(task)  # refuses unknown names
    template = WORDS if template is None else check_template(template)
    return [Part(path, DOCS, path, template, task) for path in paths]
