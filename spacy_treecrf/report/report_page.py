"""The page of a report: its sections in one file."""

from __future__ import annotations

from spacy_treecrf.pages.document import document
from spacy_treecrf.pages.markup import Markup, tag
from spacy_treecrf.pages.packing import packed
from spacy_treecrf.pages.text_page import shortened_token
from spacy_treecrf.report import model_sections, score_sections
from spacy_treecrf.report.report import Report, Rival

SCRIPTS = ("packing.js", "panel.js", "report.js")


def report_page(report: Report, rival: Rival | None = None, *, version: str = "") -> str:
    """The report as one self-contained file.

    rival: Another model, shown beside the first. version: Of the package, for the last line.
    """
    sections = [("Scores", score_sections.scores(report, rival))]
    if rival is not None:
        sections.append(("Comparison", score_sections.comparison(report, rival)))
    sections += [
        ("Parts of the data", score_sections.groups(report)),
        ("Probabilities", score_sections.probabilities(report, rival)),
        ("Confusion", model_sections.confusions(report)),
    ]
    if report.errors:
        sections.append(("Most confident errors", model_sections.errors(report)))
    sections += [
        ("Training", model_sections.training(report)),
        ("Importance of features", model_sections.importance(report)),
    ]
    title = f"{report.model} on {report.data}"
    head = tag(
        "header",
        tag("h1", title),
        None if rival is None else tag("p", f"A is {report.model}, B is {rival.model}."),
        tag(
            "nav",
            tag("ul", (tag("li", tag("a", name, href=f"#{_id(name)}")) for name, _ in sections)),
            class_="contents",
            aria_label="Contents",
        ),
        class_="top",
    )
    main = tag("main", (_section(name, content) for name, content in sections))
    foot = tag("footer", tag("p", f"Written by spacy-treecrf report {version}"))
    explanations = [
        None if error.explanation is None else shortened_token(error.explanation)
        for error in report.errors
    ]
    body = tag("div", head, main, foot)
    return document(title, body, data=packed(explanations), scripts=SCRIPTS)


def _section(name: str, content: Markup) -> Markup:
    key = _id(name)
    heading = tag("h2", name, id=f"{key}-heading")
    return tag("section", heading, content, id=key, aria_labelledby=f"{key}-heading")


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")
