"""Rules of the house that a program can check: sizes of functions, and how docstrings begin."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spacy_treecrf

PACKAGE = Path(spacy_treecrf.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 60
MOST_PARAMETERS = 8
# What a comment above a function begins with that has more, and then says why.
LONG = "# Long:"
MANY = "# Many parameters:"
# Words that leave the reader without a subject.
RIDDLES = ("Of ", "Those ", "Whose ")


def functions(module: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Functions of a module with the comment right above them."""
    text = module.read_text(encoding="utf8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            comment = []
            while first and lines[first - 1].lstrip().startswith("#"):
                first -= 1
                comment.append(lines[first].strip())
            yield node, "\n".join(reversed(comment))


def n_parameters(function: ast.FunctionDef) -> int:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in every)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_are_short_or_say_why_not(module: Path) -> None:
    for function, comment in functions(module):
        assert function.end_lineno is not None
        n_lines = function.end_lineno - function.lineno + 1
        where = f"{function.name} in {module} "
        if n_lines > MOST_LINES:
            assert LONG in comment, f"{where} has {n_lines} lines; cut it, or say why: {LONG} ..."
        if n_parameters(function) > MOST_PARAMETERS:
            assert MANY in comment, f"{where} has many parameters; say why: {MANY} ..."


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docstrings_begin_with_a_subject(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            doc = ast.get_docstring(node) or ""
            name = getattr(node, "name", "the module")
            assert not doc.startswith(RIDDLES), f"{name} in {module}: who or what? {doc[:60]}"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_unique_rows_by_numpy(module: Path) -> None:
    """np.unique(axis=...) compares structured arrays, and numpy asks Python code how to.

    Where a signal handler raises there, as Ctrl-C does, numpy makes a TypeError of it.
    """
    for node in ast.walk(ast.parse(module.read_text(encoding="utf8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.unique":
            assert "axis" not in {keyword.arg for keyword in node.keywords}, module
