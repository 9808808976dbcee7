"""Sections of the report on how good the model is: scores, groups, probabilities, a rival."""

from __future__ import annotations

from collections.abc import Sequence

from spacy_treecrf.evaluation.bootstrap import PairedDifference
from spacy_treecrf.evaluation.calibration import CalibrationBins
from spacy_treecrf.evaluation.groups import GroupScore
from spacy_treecrf.evaluation.thresholds import OperatingPoint
from spacy_treecrf.pages.axes import Axis
from spacy_treecrf.pages.charts import (
    Line,
    bar_chart,
    figure,
    line_chart,
    reliability_chart,
)
from spacy_treecrf.pages.markup import Child, Markup, join, table, tag
from spacy_treecrf.report.report import Report, Rival
from spacy_treecrf.report.wording import (
    NAMES,
    PLAIN,
    between,
    number,
    p_value,
    percent,
    share_bar,
    signed,
)


def scores(report: Report, rival: Rival | None) -> Markup:
    """The figures with their intervals, those of the rival beside them."""
    confidence = f"{report.confidence:.0%} interval"
    header = ["", "value", confidence]
    if rival is not None:
        header = ["", "A", confidence, "B", confidence]
    rows = []
    for name, own in report.figures.figures.items():
        plain = name in PLAIN
        row: list[Child] = [NAMES[name], number(own.value, plain), between(own, plain)]
        if rival is not None and name in rival.figures.figures:
            other = rival.figures.figures[name]
            row += [number(other.value, plain), between(other, plain)]
        rows.append(row)
    notes = [
        f"{report.figures.sequences:,} sequences with {report.figures.annotated:,} annotated "
        "tokens. Intervals come from resampling whole sequences."
    ]
    if report.figures.impossible:
        notes.append(
            f"{report.figures.impossible} sequences have a gold annotation that the model's "
            "constraints forbid; they are not part of the likelihood."
        )
    if report.figures.unaligned:
        notes.append(
            f"{report.figures.unaligned} gold spans do not align with the pipeline's tokens; they "
            "count as missed."
        )
    if report.figures.unseen:
        unseen = ", ".join(f"{label} ({n})" for label, n in report.figures.unseen.items())
        notes.append(f"Labels that the model does not know: {unseen}.")
    return join(
        [
            (tag("p", note, class_="lead") for note in notes),
            table(header, rows, caption="Scores on the test data"),
        ]
    )


def comparison(report: Report, rival: Rival) -> Markup:
    """Whether the rival is better: a paired bootstrap, and McNemar's test."""
    found = rival.comparison

    def row(name: str, pair: PairedDifference) -> list[Child]:
        low, high = pair.interval.low, pair.interval.high
        bounds = "" if low is None else f"{signed(low)} to {signed(high)}"
        difference = signed(pair.interval.value)
        return [name, percent(pair.a), percent(pair.b), difference, bounds, p_value(pair.p_value)]

    rows = [row("token accuracy", found.token_accuracy)]
    if found.span_f1 is not None:
        rows.append(row("span F1", found.span_f1))
    header = ["", "A", "B", "B − A", f"{report.confidence:.0%} interval", "p"]
    test = found.mcnemar
    return join(
        [
            table(header, rows, caption="Paired bootstrap; differences in percentage points"),
            tag(
                "p",
                f"McNemar's test on tokens: only A is right at {test.only_a:,}, only B at "
                f"{test.only_b:,}; p = {p_value(test.p_exact)} (exact), {p_value(test.p_chi2)} "
                f"(chi-squared {test.chi2:.2f}).",
            ),
        ]
    )


def groups(report: Report) -> Markup:
    """Scores by type, by known and unknown words, and by length."""
    own = report.groups
    what = "Span F1" if report.has_spans else "Token accuracy"
    parts: list[Child] = [
        tag("h3", "By type" if report.has_spans else "By label"),
        tag(
            "div",
            _group_figure(
                own.by_type, "F1 by type" if report.has_spans else "F1 by label", True, beside=True
            ),
            class_="pictures",
        ),
    ]
    smaller: list[Child] = []
    if own.by_words is not None:
        smaller.append(_group_figure(own.by_words, f"{what} by words", report.has_spans))
    if own.by_length:
        smaller.append(_group_figure(own.by_length, "Span F1 by length of the span", True))
    smaller.append(
        _group_figure(own.by_sequence, f"{what} by length of the sequence", report.has_spans)
    )
    about = (
        "A word is known if the model has a feature for it, that is, if training has seen it often "
        "enough."
        if own.by_words is not None
        else "The model has no features of whole words, so that known and unknown ones are not "
        "told apart."
    )
    parts += [tag("h3", "By words and length"), tag("p", about, class_="lead")]
    return join([*parts, tag("div", smaller, class_="pictures")])


def _group_figure(
    groups: Sequence[GroupScore], title: str, has_spans: bool, *, beside: bool = False
) -> Markup:
    """A picture of groups with their numbers, which are beside it or can be opened."""
    filled = [own for own in groups if own.score.gold or own.score.predicted]
    if has_spans:
        header = ["", "precision", "recall", "F1", "interval", "predicted", "gold"]
        rows: list[list[Child]] = [
            [
                own.name or "(no type)",
                percent(own.precision.value),
                percent(own.recall.value),
                percent(own.f1.value),
                between(own.f1),
                f"{own.score.predicted:,}",
                f"{own.score.gold:,}",
            ]
            for own in filled
        ]
    else:
        header = ["", "accuracy", "interval", "tokens"]
        rows = [
            [own.name, percent(own.f1.value), between(own.f1), f"{own.score.gold:,}"]
            for own in filled
        ]
    picture = bar_chart(
        title, [share_bar(own.name or "(no type)", own.f1) for own in filled], most=1.0
    )
    numbers = table(header, rows, caption=title)
    return join([figure(picture, title), numbers]) if beside else figure(picture, title, numbers)


def probabilities(report: Report, rival: Rival | None) -> Markup:
    """Reliability diagrams, and precision and recall over min_prob."""
    pictures = [_reliability(report.figures.calibration, "Labels of tokens")]
    if report.span_calibration is not None:
        pictures.append(_reliability(report.span_calibration, "Spans"))
    pictures.append(_thresholds(report, rival))
    best = max(report.points, key=lambda point: (point.score.f1, -point.min_prob))
    return join(
        [
            tag(
                "p",
                "A probability is reliable if answers that are given it are right that often: "
                "points on the diagonal. Pale columns show where the answers are, and small dots "
                "that there are few of them.",
                class_="lead",
            ),
            tag("div", pictures, class_="pictures"),
            tag(
                "p",
                f"F1 is highest, {percent(best.score.f1)}, at min_prob = {best.min_prob:g} "
                "(chosen on these data, and so a little too good).",
            ),
        ]
    )


def _reliability(bins: CalibrationBins, what: str) -> Markup:
    filled = [
        (low, high, n, p, right)
        for low, high, n, p, right in zip(
            bins.edges[:-1].tolist(),
            bins.edges[1:].tolist(),
            bins.counts.tolist(),
            bins.confidence.tolist(),
            bins.accuracy.tolist(),
            strict=True,
        )
        if n
    ]
    rows = [
        [f"{low:.2f} to {high:.2f}", f"{n:,}", percent(p), percent(right)]
        for low, high, n, p, right in filled
    ]
    title = f"{what}: reliability, error {percent(bins.error)}"
    x, y = Axis("probability", 0.0, 1.0, percent=True), Axis("right", 0.0, 1.0, percent=True)
    header = ["probability", "answers", "mean probability", "right"]
    return figure(reliability_chart(title, filled, x, y), title, table(header, rows, caption=title))


def _thresholds(report: Report, rival: Rival | None) -> Markup:
    def lines(points: Sequence[OperatingPoint], of: str) -> list[Line]:
        kept = [point for point in points if point.score.predicted]
        return [
            Line(f"precision{of}", [(point.min_prob, point.score.precision) for point in kept]),
            Line(f"recall{of}", [(point.min_prob, point.score.recall) for point in points]),
        ]

    shown = lines(report.points, "" if rival is None else " of A")
    if rival is not None:
        shown += lines(rival.points, " of B")
    lowest = min(y for line in shown for _, y in line.points)
    x = Axis("min_prob", 0.0, 1.0)
    y = Axis("share", 0.0 if lowest < 0.5 else 0.5 if lowest < 0.8 else 0.8, 1.0, percent=True)
    rows = [
        [
            f"{point.min_prob:g}",
            percent(point.score.precision) if point.score.predicted else "–",
            percent(point.score.recall),
            percent(point.score.f1),
            f"{point.score.predicted:,}",
        ]
        for point in report.points
    ]
    title = "Precision and recall over min_prob"
    header = ["min_prob", "precision", "recall", "F1", "answers kept"]
    return figure(
        line_chart(title, x, y, shown),
        f"{title}: only answers that are at least so probable are kept",
        table(header, rows, caption=title),
    )
