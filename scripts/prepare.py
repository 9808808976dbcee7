"""Write the corpus of a task, its source fetched if need be, into corpus/<task>/.

Nothing is fetched that is below the folder named by TREECRF_CORPORA, or below assets/.
"""

from __future__ import annotations

import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from weasel.util import get_checksum

from scripts.unpack import unpack
from spacy_treecrf.cli.shared.common import reports_errors, say
from spacy_treecrf.corpora import Corpus, find_corpus, prepare_corpus

# For each task its corpus, and the rule to split it by.
TASKS = {
    "letters": ("cmudict", "default"),
    "chunk": ("conll2000", "published"),
    "tagger": ("conll2000", "published"),
    "ner": ("conll2003", "published"),
    "nettalk": ("nettalk", "small"),
    "stress": ("nettalk", "small"),
    "hyphenate": ("moby", "large"),
    "protein": ("protein", "published"),
    "protein8": ("protein8", "published"),
    "ocr": ("ocr", "fold0"),
}
OWN = "default"  # stands for the split rule of the task


@reports_errors
def prepare(
    task: Annotated[str, typer.Argument(help="Name of a config in configs/.")],
    split: Annotated[
        str, typer.Option(help="Split rule of the corpus; default: the task's.")
    ] = OWN,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the files; default: corpus/<task>.")
    ] = None,
) -> None:
    """Write train.spacy, dev.spacy and test.spacy."""
    if task not in TASKS:
        raise ValueError(f"treecrf: there is no task {task!r}; use one of {', '.join(TASKS)}")
    name, own = TASKS[task]
    provide(find_corpus(name), Path("project.yml"))
    prepared = prepare_corpus(
        name,
        output or Path("corpus", task),
        split=own if split == OWN else split,
        force=True,
        report=say,
    )
    for part, files in prepared.items():
        say(f"{part}: {files.sequences:,} sequences, {files.tokens:,} tokens")


def provide(corpus: Corpus, project: Path) -> None:
    """Make sure that the files of a corpus are there, if need be from the assets of the project."""
    if corpus.found():
        return
    for asset in assets_of(corpus, project):
        place = Path(asset["dest"])
        if not place.exists():
            download(asset["url"], place, asset["checksum"])
        if place.as_posix() not in {f"assets/{file.path}" for file in corpus.files}:
            check(place, asset["checksum"], asset["url"])
            unpack(place)


def assets_of(corpus: Corpus, project: Path) -> Iterator[dict[str, Any]]:
    folders = {Path("assets", file.path).parent for file in corpus.files}
    for asset in srsly.read_yaml(project)["assets"]:
        if Path(asset["dest"]).parent in folders:
            yield asset


def download(address: str, place: Path, checksum: str) -> None:
    """Download a file; it is there in the end only if all of it came."""
    say(f"fetching {address}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fetched = Path(folder, place.name)
        try:
            with urllib.request.urlopen(address) as source, fetched.open("wb") as copy:
                shutil.copyfileobj(source, copy)
        except OSError as error:
            raise OSError(
                f"treecrf: cannot fetch {address}: {error}; put the file at {place} yourself, or "
                "set TREECRF_CORPORA to a folder that has the corpus"
            ) from error
        check(fetched, checksum, address)
        fetched.replace(place)


def check(file: Path, checksum: str, address: str) -> None:
    found = get_checksum(file)
    if found != checksum:
        raise ValueError(
            f"treecrf: {file.name} has the md5 checksum {found}; expected {checksum}: it is "
            f"damaged or another version; get it again from {address}"
        )


if __name__ == "__main__":
    typer.run(prepare)
