"""The command `audit`: annotation errors of a corpus, and the corpus with accepted corrections."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_treecrf.cli.shared.common import (
    output_text,
    print_json,
    refuse_existing,
    reports_errors,
    rounds_progress,
    say,
)
from spacy_treecrf.cli.shared.options import Encoding
from spacy_treecrf.cli.shared.setting_options import takes_settings
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.storage.files import check_target, refuse_inputs, replacing

if TYPE_CHECKING:
    from spacy_treecrf.audit.auditing import LabelledData
    from spacy_treecrf.audit.column_corpus import ColumnCorpus
    from spacy_treecrf.audit.doc_corpus import DocCorpus
    from spacy_treecrf.audit.findings import Audit

EXAMPLES = """\b
Examples:
  spacy-treecrf audit train.conll --page review.html
  spacy-treecrf audit train.spacy -o findings.jsonl --most 100
  spacy-treecrf audit tags.spacy --task tag
  spacy-treecrf audit train.conll --apply decisions.jsonl -o corrected.conll
"""
OPTIONS = ("rounds", "linear_rounds", "shrinkage", "min_count", "seed", "threads")
SHOWN = 20  # findings in the terminal
ON_PAGE = 1000  # findings on the page, unless told otherwise


@dataclass(frozen=True)
class Source:
    """The corpus that a user names, and how it is read."""

    path: Path
    encoding: str
    columns: dict[str, Any]
    task: str
    config: Path | None
    lang: str | None

    def read(self) -> ColumnCorpus | DocCorpus:
        if self.path.suffix == ".spacy":
            from spacy_treecrf.audit.doc_corpus import DocCorpus

            return DocCorpus.read(self.path, self.task, self.config, self.lang)
        from spacy_treecrf.audit.column_corpus import ColumnCorpus

        return ColumnCorpus.read(self.path, self.encoding, **self.columns)

    def options(self) -> list[str]:
        """The options that tell how the corpus is read, where they are not the default."""
        asked: dict[str, Any]
        if self.path.suffix == ".spacy":
            asked = {"--config": self.config, "--lang": self.lang}
            if self.config is None and self.task != "ents":
                asked["--task"] = self.task
        else:
            kinds = ",".join(f"{number}={kind}" for number, kind in self.columns["kinds"].items())
            column = self.columns["label_column"]
            asked = {
                "--label-column": None if column == -1 else column,
                "--columns": kinds or None,
                "--unlabelled": self.columns["unlabelled"],
                "--encoding": None if self.encoding == "utf-8" else self.encoding,
            }
        given = ((name, str(value)) for name, value in asked.items() if value is not None)
        return [text for pair in given for text in pair]


# Many parameters: typer makes an option of each.
# Long: half of it is the signature.
@reports_errors
@takes_settings(Settings, OPTIONS)
def audit(
    *,
    corpus: Annotated[Path, typer.Argument(help="Column file with labels, or .spacy file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File of findings, JSON lines; with --apply, the new corpus."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Page where a person decides: an .html file.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(help="File of decisions, saved from the page: write the corrected corpus."),
    ] = None,
    most: Annotated[
        int | None, typer.Option(min=1, help="Most findings to write or show, best first.")
    ] = None,
    folds: Annotated[
        int,
        typer.Option(min=2, help="Parts of the corpus; each is judged by models of the others."),
    ] = 5,
    members: Annotated[
        int, typer.Option(min=1, help="Models for each part, whose average judges it.")
    ] = 3,
    apart: Annotated[
        bool,
        typer.Option(
            "--apart",
            help="Sentences of a document are in different parts: finds more single errors, and "
            "fewer that a document repeats.",
        ),
    ] = False,
    task: Annotated[
        str, typer.Option(help="Of .spacy files: ents, spans:KEY, tag or pos.")
    ] = "ents",
    config: Annotated[
        Path | None,
        typer.Option(help="Of .spacy files: config whose treecrf pipe has the task and features."),
    ] = None,
    lang: Annotated[str | None, typer.Option(help="Of .spacy files: language of spaCy.")] = None,
    label_column: Annotated[
        int, typer.Option(help="Column of the label, from 1; negative: from the end.")
    ] = -1,
    columns: Annotated[
        str, typer.Option(help="What columns are, as for `train`: e.g. 2=number,3=skip.")
    ] = "",
    window: Annotated[
        int | None, typer.Option(help="Positions on both sides that count, as for `train`.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="Label that means: this token is not annotated.")
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="What else to know of words, as for `train`: clusters=LANGUAGE, ..."),
    ] = None,
    encoding: Encoding = "utf-8",
    settings: dict[str, Any],
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print counts as JSON.")] = False,
) -> None:
    """Find annotation errors: wrong types and boundaries, missing and spurious spans.

    Every part of the corpus is judged by models that have not seen it; documents stay together.
    Labels that are no spans are judged position by position.
    """
    from spacy_treecrf.columnar.template import parse_kinds

    kinds = {"label_column": label_column, "kinds": parse_kinds(columns)}
    kinds |= {"window": window, "unlabelled": unlabelled}
    source = Source(corpus, encoding, kinds, task, config, lang)
    if apply is not None:
        if page is not None:
            raise ValueError("treecrf: --page does not go with --apply; leave one out")
        _apply(source, apply, output, force, as_json)
        return
    for path in (output, page):
        if path is not None:
            refuse_existing(path, force, corpus, config)
    if output is not None and page is not None and output.resolve() == page.resolve():
        raise ValueError("treecrf: --output and --page name the same file; name two")
    Settings(**settings)  # so that what does not go together is refused before any work
    read = source.read()
    found = _audited(
        read, settings, {"folds": folds, "members": members, "together": not apart}, features
    )
    entries = _entries(read, found, most)
    if output is not None:
        with output_text(output) as file:
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in entries)
    if page is not None:
        _write_page(page, source, entries[: most or ON_PAGE], found)
    if as_json:
        print_json(found.summary())
        return
    _print_findings(found, entries[: most or SHOWN])
    for path in (output, page):
        if path is not None:
            say(f"saved to {path}")


def _audited(
    read: ColumnCorpus | DocCorpus,
    given: dict[str, Any],
    plan: dict[str, Any],
    features: list[str] | None,
) -> Audit:
    """given: Settings on the command line. plan: What `Plan` takes but for the seed."""
    from spacy_treecrf.audit.auditing import audit_data
    from spacy_treecrf.audit.column_corpus import ColumnCorpus
    from spacy_treecrf.audit.cross_fitting import Plan

    labelled: LabelledData
    if isinstance(read, ColumnCorpus):
        from spacy_treecrf.columnar.word_features import make_word_features

        settings = Settings(**given)
        labelled = read.labelled(settings, make_word_features(features or []))
    else:
        if features:
            raise ValueError(
                "treecrf: --features is for column files; name a config with more features by "
                "--config"
            )
        settings = Settings(**{**read.settings.to_dict(), **given})
        labelled = read.labelled(settings)
    with rounds_progress("judging") as tell:
        return audit_data(labelled, settings, Plan(**plan, seed=settings.seed), tell)


def _entries(
    read: ColumnCorpus | DocCorpus, found: Audit, most: int | None
) -> list[dict[str, Any]]:
    from spacy_treecrf.audit.entries import entry

    words = read.words
    return [
        entry(rank, one, read.place(one.sequence, one.start), words[one.sequence], read.layer)
        for rank, one in enumerate(found.findings[:most], start=1)
    ]


def _write_page(page: Path, source: Source, entries: list[dict[str, Any]], found: Audit) -> None:
    from spacy_treecrf.pages.review_page import review_page

    corpus = source.path
    command = ["spacy-treecrf", "audit", str(corpus), *source.options()]
    command += ["--apply", "decisions.jsonl", "-o", f"corrected{corpus.suffix}"]
    about = (
        f"{len(entries):,} of {len(found.findings):,} findings in {len(found.judged):,} judged "
        f"{'spans' if found.spans else 'positions'}, the most probable errors first. Then: "
        f"{shlex.join(command)}"
    )
    with output_text(page) as file:
        file.write(review_page(entries, title=f"Audit of {corpus.name}", about=about))


def _print_findings(found: Audit, entries: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("rank", "kind", "place", "annotated", "suggested", "P(annotated)", "elsewhere"):
        table.add_column(name, justify="right" if name in ("rank", "P(annotated)") else "left")
    for one in entries:
        elsewhere = ", ".join(f"{label} {n}" for label, n in one["elsewhere"].items())
        cells = [str(one["rank"]), one["kind"], one["place"], *_sides(one)]
        cells += [f"{one['probability']:.2g}", elsewhere]
        table.add_row(*(Text(cell) for cell in cells))
    console = Console()
    console.print(table)
    counts = found.summary()
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in counts["kinds"].items()) or "none"
    what = "spans" if found.spans else "positions"
    console.print(
        Text(f"{counts['judged']:,} {what} judged; {counts['findings']:,} findings: {kinds}")
    )


def _sides(one: dict[str, Any]) -> list[str]:
    return [
        "; ".join(f"{_words(one, span)} [{span['label']}]" for span in one[side])
        or f"{_words(one, one)} [nothing]"
        for side in ("annotated", "suggested")
    ]


def _words(one: dict[str, Any], span: dict[str, Any]) -> str:
    first = one["first"]
    return " ".join(one["words"][span["start"] - first : span["end"] - first])


def _apply(
    source: Source, decisions: Path, output: Path | None, force: bool, as_json: bool
) -> None:
    from spacy_treecrf.audit.entries import read_decisions, refuse_other_layers

    if output is None:
        raise ValueError("treecrf: name the corrected corpus by --output")
    check_target(output)
    if output.is_file() and not force:
        raise ValueError(
            f"treecrf: {output} exists; use --force to replace it, also where it is the corpus "
            "itself, or another name"
        )
    refuse_inputs(output, [decisions, source.config])
    accepted, others = read_decisions(decisions)
    corpus = source.read()
    refuse_other_layers(accepted, corpus.layer)
    content = corpus.corrected(accepted)
    with replacing(output) as file:
        file.write(content)
    if as_json:
        print_json({"applied": len(accepted), "others": others, "corpus": str(output)})
    else:
        say(f"{len(accepted):,} corrections applied, {others:,} other lines; saved to {output}")
