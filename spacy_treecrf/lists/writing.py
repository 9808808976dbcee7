"""Word lists of a language as text files, a phrase in each line."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from spacy_treecrf.lists.sources import SOURCES, Lists
from spacy_treecrf.storage.files import replacing


def require_sources() -> None:
    """Refuse to go on without the packages that the lists come from."""
    lacking = []
    for distribution in SOURCES:
        try:
            metadata.distribution(distribution)
        except metadata.PackageNotFoundError:
            lacking.append(distribution)
    if lacking:
        raise ValueError(
            f'treecrf: `lists` needs {", ".join(lacking)}, of the extra "lists"; pip install '
            f'{" ".join(lacking)}, or pip install "spacy-treecrf[lists]"'
        )


def lists_of(language: str) -> Lists:
    """All lists of a language, empty where no package knows it.

    language: A code, in capitals or not, also with a script or country behind "_" or "-".
    """
    require_sources()
    code, *of_script_or_country = language.replace("-", "_").split("_")
    language = "_".join([code.lower(), *of_script_or_country])
    found: Lists = {}
    for source in SOURCES.values():
        found.update(source(language))
    return found


def write_lists(language: str, folder: Path) -> dict[str, int]:
    """Write a file for each list into the folder; returns how many phrases each has.

    A list without a phrase has no file, also where another language had one in this folder.
    """
    lists = lists_of(language)
    folder.mkdir(parents=True, exist_ok=True)
    for name, phrases in lists.items():
        path = folder / f"{name}.txt"
        if not phrases:
            path.unlink(missing_ok=True)
            continue
        with replacing(path) as file:
            file.writelines(f"{' '.join(phrase.split())}\n".encode() for phrase in sorted(phrases))
    return {name: len(phrases) for name, phrases in lists.items()}
