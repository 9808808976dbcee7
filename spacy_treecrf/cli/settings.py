"""`settings`: every setting with its values, its default and what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from spacy_treecrf.cli.shared.common import reports_errors

if TYPE_CHECKING:
    from spacy_treecrf.engine.setting import SettingsBase

EXAMPLES = """\b
Examples:
  spacy-treecrf settings
  spacy-treecrf settings BoostedMEMM
  spacy-treecrf settings --markdown   # of all models, as tables
"""


@reports_errors
def settings(
    model: Annotated[
        str,
        typer.Argument(
            help="BoostedCRF (which `train` trains), BoostedMEMM, FutureFeatureMEMM, "
            "PerceptronTagger or SECOCCRF."
        ),
    ] = "BoostedCRF",
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print tables of all models' settings.")
    ] = False,
) -> None:
    """Show all settings of a model: their defaults, values and meaning."""
    if markdown:
        typer.echo("\n".join(_markdown(name, kind) for name, kind in kinds().items()))
        return
    known = kinds()
    if model not in known:
        raise ValueError(f"treecrf: there is no model {model!r}; use one of {', '.join(known)}")
    for row in rows(known[model]):
        typer.echo(f"{row.name} = {row.default}")
        typer.echo(textwrap.indent(textwrap.fill(f"{row.help} Use {row.values}.", 92), "    "))


class Row(NamedTuple):
    name: str
    default: str
    values: str
    help: str


def kinds() -> dict[str, type[SettingsBase]]:
    """The settings of every model, by the names of the estimators."""
    from spacy_treecrf.engine.boosting.settings import Settings
    from spacy_treecrf.models.memm.settings import FutureSettings, MEMMSettings
    from spacy_treecrf.models.perceptron_settings import PerceptronSettings
    from spacy_treecrf.models.secoc.settings import SECOCSettings

    return {
        "BoostedCRF": Settings,
        "BoostedMEMM": MEMMSettings,
        "FutureFeatureMEMM": FutureSettings,
        "PerceptronTagger": PerceptronSettings,
        "SECOCCRF": SECOCSettings,
    }


def rows(kind: type[SettingsBase]) -> Iterator[Row]:
    defaults = kind.defaults()
    for name, setting in kind.settings().items():
        yield Row(name, setting.shown(defaults[name]), setting.allowed, setting.help)


def _markdown(name: str, kind: type[SettingsBase]) -> str:
    lines = [f"### {name}", "", "| setting | default | values | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | `{row.default}` | {row.values} | {row.help} |" for row in rows(kind)
    ]
    return "\n".join(lines) + "\n"
