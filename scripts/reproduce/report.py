"""The report of an experiment: tables, pictures and comparisons, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import srsly

from spacy_treecrf.cli.shared.tables import table


@dataclass(frozen=True)
class Table:
    title: str
    head: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        """The table for a terminal."""
        return f"{self.title}\n\n{table(self.head, self.rows)}"

    def markdown(self) -> str:
        rows = [[cell.replace("*", "\\*") for cell in row] for row in self.rows]
        lines = [self.head, ["---"] * len(self.head), *rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in lines)])


@dataclass(frozen=True)
class Picture:
    """A picture.

    file: Its name, in the folder of the results.
    """

    file: str
    caption: str


@dataclass(frozen=True)
class Comparison:
    """One of our figures beside a published one, or beside what we set out to reach.

    why: The reason or the open question, if ours is worse.
    """

    what: str
    ours: float
    published: float
    why: str = ""
    lower_is_better: bool = False

    @property
    def reached(self) -> bool:
        return self.ours <= self.published if self.lower_is_better else self.ours >= self.published


@dataclass(frozen=True)
class Report:
    """The report of an experiment.

    title: The paper and its table, such as "Hao (2009), table 3.4: shrinkage".
    remarks: How it was made, and what one should know to read it; a paragraph each.
    seconds, quick, version: Filled in by the runner.
    """

    title: str
    tables: list[Table] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    quick: bool = False
    version: str = ""

    def below(self) -> Iterator[Comparison]:
        return (comparison for comparison in self.comparisons if not comparison.reached)

    def text(self) -> str:
        """The report for a terminal."""
        blocks = [table_.text() for table_ in self.tables]
        for c in self.below():
            why = f": {c.why}" if c.why else ""
            blocks.append(f"below the published figure: {_in_words(c)}{why}")
        return "\n\n".join([self.title, *blocks, *self.remarks])

    def markdown(self, name: str, folder: str) -> str:
        """The report as Markdown.

        folder: The folder of the pictures, as seen from the file that the Markdown goes into.
        """
        blocks = [f"## {self.title}", *(table_.markdown() for table_ in self.tables)]
        blocks += [f"![{p.caption}]({folder}/{p.file})\n\n{p.caption}" for p in self.pictures]
        blocks += self.remarks
        blocks.append(f"`python -m scripts.reproduce {name}`: {_duration(self.seconds)}.")
        return "\n\n".join(blocks)


def store(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(path, asdict(report))


def load(path: Path) -> Report:
    stored: dict[str, Any] = srsly.read_json(path)
    parts = {"tables": Table, "comparisons": Comparison, "pictures": Picture}
    return Report(
        **stored | {name: [kind(**x) for x in stored[name]] for name, kind in parts.items()}
    )


# Versions that learn the same models, bit for bit, as `python -m scripts.golden` shows: what one of
# them reports holds for all.
SAME_MODELS = ("0.1.0", "0.2.0")


def document(reports: dict[str, Report], folder: str) -> str:
    """All reports as one Markdown page.

    reports: The reports by the names of their experiments, in the order of the page.
    """
    versions = ", ".join(sorted({report.version for report in reports.values()}))
    seconds = sum(report.seconds for report in reports.values())
    quick = any(report.quick for report in reports.values())
    reduced = ", in reduced versions (`--quick`)" if quick else ""
    blocks = [
        "# The papers' tables, and ours",
        f"Made with spacy-treecrf {versions}{reduced} (versions {SAME_MODELS[0]} to "
        f"{SAME_MODELS[-1]} learn the same models), {_duration(seconds)} of running in all, and "
        f"not written by hand: each section is stored in `{folder}/` and names the command that "
        "makes it again, beside the time that it took. `spacy project run reproduce` runs all.",
    ]
    below = [comparison for report in reports.values() for comparison in report.below()]
    if below:
        blocks += ["## Where ours is below", _by_cause(below)]
    blocks += [report.markdown(name, folder) for name, report in reports.items()]
    return "\n\n".join(blocks) + "\n"


def _by_cause(comparisons: list[Comparison]) -> str:
    """A list of the reasons, in order of appearance, with the figures of each beneath it."""
    causes: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        causes.setdefault(comparison.why or "No reason is known", []).append(comparison)
    return "\n".join(
        "\n".join([f"- **{why[0].upper()}{why[1:]}**", *(f"    - {_in_words(c)}" for c in below)])
        for why, below in causes.items()
    )


def _in_words(comparison: Comparison) -> str:
    return f"{comparison.what}: {comparison.ours:g}, published {comparison.published:g}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
