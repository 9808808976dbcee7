"""A package of a trained model with its card: what it learned from, its scores, use and limits.

The text of a card is scripts/cards/<task>.md: what spaCy keeps in meta.json, then the card itself,
with places for the package's name and version and for the scores that were measured.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from string import Template
from typing import Annotated, Any

import srsly
import typer

from scripts.report import OTHER_NAMES, of_whole_words
from spacy_treecrf.cli.evaluate import NAMES, NAMES_OF_WORDS
from spacy_treecrf.cli.shared.common import reports_errors, say
from spacy_treecrf.cli.shared.tables import with_interval
from spacy_treecrf.evaluation.bootstrap import Interval

CARDS = Path(__file__).parent / "cards"
AUTHOR = "The spacy-treecrf developers"
LICENCES = "LICENSES_SOURCES"  # as spaCy names the file that `spacy package` takes along


@reports_errors
def gallery(
    task: Annotated[str, typer.Argument(help="Name of a card in scripts/cards/.")],
    version: Annotated[str, typer.Option(help="Of the package.")],
    model: Annotated[Path, typer.Option(help="The trained pipeline.")],
    output: Annotated[Path, typer.Option(help="Folder for packages.")],
    metrics: Annotated[Path, typer.Option(help="What `spacy-treecrf evaluate --output` wrote.")],
) -> None:
    """Make a wheel of a pipeline, with a model card."""
    measured = srsly.read_json(metrics)
    if "whole_words" in measured:
        measured = of_whole_words(measured)
    wheel = make_package(task, version, model, measured, output)
    say(f"wrote {wheel}")


def make_package(
    task: str, version: str, model: Path, metrics: dict[str, Any], output: Path
) -> Path:
    """The wheel of a pipeline that takes its card along."""
    about, text = read_card(CARDS / f"{task}.md")
    with tempfile.TemporaryDirectory() as folder:
        carded = Path(folder, "model")
        shutil.copytree(model, carded)
        meta = srsly.read_json(carded / "meta.json")
        meta |= {key: about[key] for key in ("name", "description", "license", "sources")}
        meta |= {"version": version, "author": AUTHOR}
        srsly.write_json(carded / "meta.json", meta)
        package = f"{meta['lang']}_{meta['name']}"
        card = filled(text, task, package, version, about["description"], metrics)
        (carded / "README.md").write_text(card, encoding="utf8")
        if "licences_of" in about:
            (carded / LICENCES).write_text(licence_of(about["licences_of"]), encoding="utf8")
        output.mkdir(parents=True, exist_ok=True)
        command = ["spacy", "package", str(carded), str(output), "--build", "wheel", "--force"]
        subprocess.run([sys.executable, "-m", *command], check=True)
    (wheel,) = output.glob(f"{package}-{version}/dist/*.whl")
    return wheel


def read_card(path: Path) -> tuple[dict[str, Any], str]:
    """What a card says for meta.json, and its text."""
    _, about, text = path.read_text(encoding="utf8").split("---\n", 2)
    return srsly.yaml_loads(about), text


def filled(
    text: str, task: str, package: str, version: str, description: str, metrics: dict[str, Any]
) -> str:
    """The card with the scores of an evaluation."""
    return Template(text).substitute(
        package=package,
        version=version,
        description=description,
        sequences=f"{metrics['sequences']:,}",
        scores=scores(task, metrics),
    )


def scores(task: str, metrics: dict[str, Any]) -> str:
    """The figures of `spacy-treecrf evaluate`, as a table in Markdown."""
    names = NAMES | OTHER_NAMES.get(task, {}) | NAMES_OF_WORDS
    rows = [("score", "value", f"{metrics['confidence']:.0%} interval"), ("---", "---:", "---:")]
    for name, figure in metrics["figures"].items():
        rows.append((names[name], *with_interval(Interval(**figure), name != "nll_per_token")))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def licence_of(distribution: str) -> str:
    """The licence of the data that comes with a distribution."""
    for file in metadata.distribution(distribution).files or []:
        if file.parts[-2:] == ("data", "LICENSE"):
            return file.read_text(encoding="utf8")
    raise ValueError(
        f"treecrf: the distribution {distribution} has no file data/LICENSE, which a package of "
        "what was learned from it must take along; install a version that has it"
    )


if __name__ == "__main__":
    typer.run(gallery)
