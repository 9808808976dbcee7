"""The page of texts: what is left out is summed up, and 200 sentences fit into 5 MB."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from spacy_treecrf.pages.packing import unpacked
from spacy_treecrf.pages.text_page import (
    MOST_CONTRIBUTIONS,
    MOST_EFFECTS,
    in_notebook,
    shortened_token,
    text_page,
)
from tests.pages.made_up import MARKUP, entities, tags, token
from tests.pages.test_markup import Reader


def test_contributions_that_are_left_out_are_summed_up() -> None:
    own = token(Random(0), 0, "B-PER").to_dict()
    short = shortened_token(own)
    values = [one["value"] for one in short["contributions"]]
    assert len(values) <= MOST_CONTRIBUTIONS
    assert len(values) + short["rest"]["count"] == len(own["contributions"])
    parts = [short["base"], short["left"]["value"], short["right"]["value"], short["rest"]["value"]]
    assert sum(values) + sum(parts) == pytest.approx(own["score"])
    smallest_kept = min(value for value in values if value > 0)
    left_out = [one["value"] for one in own["contributions"] if one["value"] not in values]
    assert all(value <= smallest_kept for value in left_out if value > 0)
    assert len(short["effects"]) <= MOST_EFFECTS


def test_the_page_holds_all_sequences() -> None:
    sequences = [entities(Random(0)).to_dict(), tags(Random(1)).to_dict()]
    page = text_page(sequences, title="<Title>", about="by <model>")
    (block,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    data = unpacked(json.loads(block))
    assert [own["texts"] for own in data["sequences"]] == [own["texts"] for own in sequences]
    assert [len(own["tokens"]) for own in data["sequences"]] == [6, 11]
    assert data["types"] == ["LOC", "ORG", "PER"]
    assert data["spans"]
    reader = Reader(page)
    assert "by <model>" in reader.text
    assert MARKUP not in page


def test_positions_without_texts_are_numbered() -> None:
    own = {**tags(Random(0)).to_dict(), "texts": [], "whitespace": []}
    (block,) = re.findall(r'json"[^>]*>(.*?)</script>', text_page([own], title="t"))
    assert unpacked(json.loads(block))["sequences"][0]["texts"][:2] == ["1", "2"]


def test_200_sentences_are_less_than_5_mb() -> None:
    rng = Random(0)
    page = text_page([entities(rng).to_dict() for _ in range(200)], title="t")
    assert len(page.encode()) < 5_000_000


def test_in_a_notebook_it_is_a_frame() -> None:
    shown = in_notebook([entities(Random(0)).to_dict()], "a title")
    (element,) = Reader(shown).elements
    assert element[0] == "iframe"
    assert element[1]["srcdoc"] == text_page([entities(Random(0)).to_dict()], title="a title")


def test_explanations_show_themselves_in_notebooks() -> None:
    whole = entities(Random(0))
    assert whole._repr_html_() == in_notebook([whole.to_dict()])
    (element,) = Reader(whole.tokens[0]._repr_html_()).elements
    assert element[0] == "iframe"
    assert "lower[0]=Mary" in str(element[1]["srcdoc"])
