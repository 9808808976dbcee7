"""Markup: what comes from data is escaped, whatever it is."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.pages.markup import Markup, join, table, tag

# The characters that HTML itself changes: carriage returns and null.
texts = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


class Reader(HTMLParser):
    """Elements with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(texts, texts)
def test_text_and_attributes_come_back_as_they_were(text: str, value: str) -> None:
    found = Reader(tag("p", text, title=value))
    assert found.elements == [("p", {"title": value})]
    assert found.text == text


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=3))
def test_cells_of_tables_make_no_elements(rows: list[list[str]]) -> None:
    found = Reader(table(["<b>", "&amp;"], rows, caption="<script>"))
    names = {name for name, _ in found.elements}
    assert names <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert found.text == "<script>" + "<b>&amp;" + "".join(map("".join, rows))


def test_markup_numbers_and_nothing() -> None:
    assert tag("b", Markup("<i>")) == "<b><i></b>"
    assert tag("b", None, [1, 2.5, (0.333333, "<")]) == "<b>12.50.33&lt;</b>"
    assert tag("br") == "<br>"
    assert join(["<", Markup("<hr>")]) == "&lt;<hr>"


def test_attributes_may_be_without_value_or_left_out() -> None:
    found = tag("a", hidden=True, href=None, open=False, class_="x", aria_label='"')
    assert found == '<a hidden class="x" aria-label="&quot;"></a>'
