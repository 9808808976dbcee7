"""HTML and SVG as text in which everything that came from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})
# A child: text that will be escaped, markup that is not, a number, nothing, or several of these.
Child = object


class Markup(str):
    """HTML whose parts from data are escaped already."""

    __slots__ = ()


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element; None and False leave an attribute out, True sets it without a value.

    An underscore in the name of an attribute stands for a dash, and one at its end for nothing.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{escape(_plain(value), quote=True)}"')
    start = f"<{' '.join(parts)}>"
    return Markup(start if name in VOID else f"{start}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other; what is not markup is escaped."""
    return Markup("".join(map(_child, children)))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)) or hasattr(child, "__next__"):
        return join(child)  # type: ignore[arg-type]
    return escape(_plain(child), quote=False)


def _plain(value: object) -> str:
    """Numbers with few digits: coordinates need no more."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "-"
    return str(value)


def table(
    header: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    caption: str,
    numbers_from: int = 1,
) -> Markup:
    """A table whose first column names the rows; it scrolls by itself where it is too wide.

    numbers_from: The first column of numbers, which are set right.
    """

    def cell(i: int, child: Child) -> Markup:
        scope = "row" if i == 0 else None
        kind = "number" if i >= numbers_from else None
        return tag("th" if i == 0 else "td", child, scope=scope, class_=kind)

    head = (
        tag("th", child, scope="col", class_="number" if i >= numbers_from else None)
        for i, child in enumerate(header)
    )
    body = (tag("tr", (cell(i, child) for i, child in enumerate(row))) for row in rows)
    whole = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", body))
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
