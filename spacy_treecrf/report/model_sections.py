"""Sections of the report on errors, on training and on what the model has learned."""

from __future__ import annotations

from spacy_treecrf.evaluation.inspection import FeatureUse, Inspection
from spacy_treecrf.evaluation.span_confusion import KINDS
from spacy_treecrf.labels.schemes import conll_spans
from spacy_treecrf.pages.axes import axis_over
from spacy_treecrf.pages.charts import Bar, Line, bar_chart, figure, heat_table, line_chart
from spacy_treecrf.pages.markup import Child, Markup, join, table, tag
from spacy_treecrf.report.learning import LearningCurve
from spacy_treecrf.report.report import Report, ShownError
from spacy_treecrf.report.wording import percent

MOST_LABELS = 24  # of a table of all pairs; of more labels, the most frequent mistakes are listed
MOST_MISTAKES = 25
MOST_SHIFTS = 10
CONTEXT = 12  # words that are shown before and after an error


def confusions(report: Report) -> Markup:
    """What is taken for what: types and boundaries of spans, or labels."""
    if report.confusion is not None:
        return _span_confusions(report)
    found = report.figures.confusion
    labels = found.labels
    if len(labels) <= MOST_LABELS:
        return heat_table(labels, found.table(labels), "Labels of tokens")
    rows = [[gold, predicted, f"{n:,}"] for gold, predicted, n in found.mistakes(MOST_MISTAKES)]
    caption = f"The most frequent mistakes; there are {len(labels)} labels"
    return table(["gold", "predicted", "tokens"], rows, caption=caption, numbers_from=2)


def _span_confusions(report: Report) -> Markup:
    found = report.confusion
    assert found is not None
    total = sum(found.kinds.values()) or 1
    kinds = [[kind, f"{found.kinds[kind]:,}", percent(found.kinds[kind] / total)] for kind in KINDS]
    shifts = [
        [_shift(start), _shift(end), f"{n:,}"]
        for (start, end), n in sorted(found.shifts.items(), key=lambda item: (-item[1], item[0]))
        if (start, end) != (0, 0)
    ][:MOST_SHIFTS]
    names = found.names
    parts = [
        heat_table(
            names, found.table(names), "Types of spans, each with the span it overlaps most"
        ),
        table(["spans", "", "share"], kinds, caption="What became of spans"),
    ]
    if shifts:
        header = ["begins", "ends", "spans"]
        parts.append(table(header, shifts, caption="Boundaries that were missed", numbers_from=2))
    return tag("div", parts, class_="pictures")


def _shift(tokens: int) -> str:
    if not tokens:
        return "right"
    unit = "token" if abs(tokens) == 1 else "tokens"
    return f"{abs(tokens)} {unit} too {'late' if tokens > 0 else 'early'}"


def errors(report: Report) -> Markup:
    """The errors that the model is most sure of, each with a place for its explanation."""
    intro = (
        f"{report.n_errors:,} places have wrong labels. These are the ones where the model gives "
        "the highest probability to its labels: often it is the annotation that is wrong."
    )
    shown = (_error(report, i, error) for i, error in enumerate(report.errors))
    return join([tag("p", intro, class_="lead"), shown])


def _error(report: Report, i: int, shown: ShownError) -> Markup:
    error = shown.error
    before = max(0, error.start - CONTEXT)
    after = min(len(shown.words), error.end + CONTEXT)
    text = tag(
        "blockquote",
        "… " if before else None,
        " ".join(shown.words[before : error.start]),
        " ",
        tag("mark", " ".join(shown.words[error.start : error.end])),
        " ",
        " ".join(shown.words[error.end : after]),
        " …" if after < len(shown.words) else None,
    )
    labels = tag(
        "p",
        "predicted ",
        tag("strong", _named(report, shown, predicted=True)),
        f" with probability {percent(error.probability)}, annotated ",
        tag("strong", _named(report, shown, predicted=False)),
    )
    why = None
    if shown.explanation is not None:
        summary = tag("summary", f"Why “{shown.words[error.wrong]}” got this label")
        why = tag("details", summary, tag("div", class_="panel", data_error=i))
    return tag("article", text, labels, why, class_="error")


def _named(report: Report, shown: ShownError, *, predicted: bool) -> str:
    """The spans at an error, or the labels of its tokens."""
    error = shown.error
    labels = shown.predicted if predicted else shown.gold
    if not report.has_spans:
        return " ".join(str(label) for label in labels[error.start : error.end])
    inside = [span for span in conll_spans(labels) if span[0] < error.end and span[1] > error.start]
    names = [f"{name} “{' '.join(shown.words[a:b])}”" for a, b, name in inside]
    return ", ".join(names) or "nothing"


def training(report: Report) -> Markup:
    """Learning curves, where the model or a log has kept them."""
    found = report.inspection
    changed = ", ".join(f"{name} = {value}" for name, value in found.changed_settings.items())
    facts = [
        ["kind of model", found.kind],
        ["rounds", f"{found.rounds:,}"],
        ["labels", f"{len(found.labels):,}"],
        ["features", f"{found.features:,} in {found.columns:,} columns"],
        ["numeric columns", f"{found.numeric_columns:,}"],
        ["settings other than the defaults", changed or "none"],
    ]
    if isinstance(found, Inspection):
        facts.insert(2, ["trees", f"{found.trees:,} with {found.leaves:,} leaves"])
        facts.insert(3, ["linear weights", f"{found.linear_weights:,}"])
    parts: list[Child] = [
        table(["", ""], facts, caption="The model", numbers_from=2),
    ]
    if report.curves:
        parts.append(tag("div", map(_curve, report.curves), class_="pictures"))
    else:
        parts.append(tag("p", "The model keeps no learning curve.", class_="soft"))
    return join(parts)


def _curve(curve: LearningCurve) -> Markup:
    points = [point for line in curve.lines.values() for point in line]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    if curve.kept is not None:
        xs.append(curve.kept)
    lines = [Line(name, own) for name, own in curve.lines.items()]
    mark = None if curve.kept is None else (curve.kept, f"model: {curve.kept:g}")
    title = f"{curve.y_name} over {curve.x_name}s"
    picture = line_chart(
        title, axis_over(curve.x_name, xs), axis_over(curve.y_name, ys), lines, mark=mark
    )
    every = sorted({x for x, _ in points})
    values = {name: dict(own) for name, own in curve.lines.items()}
    rows = [
        [f"{x:g}", *(f"{own[x]:.5g}" if x in own else "" for own in values.values())] for x in every
    ]
    return figure(picture, title, table([curve.x_name, *curve.lines], rows, caption=title))


def importance(report: Report) -> Markup:
    """What trees gain by features, and the strongest weights and transitions."""
    found = report.inspection
    if not isinstance(found, Inspection):
        parts = [tag("p", f"A {found.kind} keeps no gains of features.", class_="soft")]
        return join([*parts, (tag("p", sentence) for sentence in found.detectors)])
    pictures: list[Child] = []
    for title, uses in (
        ("Gain of trees by column", found.top_columns),
        ("Gain of trees by feature", found.top_features),
    ):
        if any(use.gain for use in uses):
            pictures.append(_gains(title, uses))
    if found.top_weights:
        weights = [[own.feature, own.label, f"{own.weight:+.2f}"] for own in found.top_weights]
        pictures.append(
            table(
                ["feature", "label", "weight"],
                weights,
                caption="Strongest linear weights",
                numbers_from=2,
            )
        )
    for title, moves in (
        ("Likely transitions", found.likely_transitions),
        ("Unlikely transitions", found.unlikely_transitions),
    ):
        if moves:
            rows = [[f"{own.previous} → {own.label}", f"{own.weight:+.2f}"] for own in moves]
            pictures.append(table(["", "weight"], rows, caption=title))
    if not pictures:
        return tag(
            "p", "The model was made small for prediction, and keeps no gains.", class_="soft"
        )
    return tag("div", pictures, class_="pictures")


def _gains(title: str, uses: list[FeatureUse]) -> Markup:
    bars = [Bar(use.name, use.gain, f"{use.gain:,.0f}") for use in uses]
    rows = [[use.name, f"{use.gain:,.1f}", f"{use.splits:,}"] for use in uses]
    return figure(bar_chart(title, bars), title, table(["", "gain", "splits"], rows, caption=title))
