"""Explanations over HTTP are those of the pipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import spacy

from tests.pipeline.tiny_pipes import pipe_of
from tests.serve.servers import Server, refused

TEXT = "Paris Lee saw New York"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": [1, 4]},
        {"positions": [0], "label": "U-PLACE", "against": "B-PERSON", "interactions": True},
        {"positions": [2], "effects": 3, "words": ["left", "Rome"], "nbest": 2},
    ],
)
def test_explanations_are_those_of_the_pipe(
    server: Server, model: Path, options: dict[str, Any]
) -> None:
    nlp = spacy.load(model)
    arguments = {name: value for name, value in options.items() if name != "positions"}
    explained = pipe_of(nlp).explain(nlp(TEXT), options.get("positions"), **arguments)
    answer = server.client.post("/explain", json={"text": TEXT, **options})
    assert answer.status_code == 200, answer.text
    assert answer.json() == json.loads(json.dumps(explained.to_dict()))


def test_long_texts_need_positions_unless_few_tokens_are_of_spans(server: Server) -> None:
    few = ["Ann", *["saw"] * 200]
    many = ["Ann", "saw"] * 101
    told = server.client.post("/explain", json={"tokens": few, "effects": 0}).json()
    chosen = [token["position"] for token in told["tokens"]]
    of_spans = [i for s in told["spans"] for i in range(s["start"], s["end"])]
    assert chosen == of_spans
    assert 0 in chosen
    error = refused(server.client.post("/explain", json={"tokens": many}), 400)
    assert error["field"] == "positions"
    body = {"tokens": many, "positions": [200], "effects": 0}
    assert server.client.post("/explain", json=body).status_code == 200


def test_words_are_tried_in_texts_of_a_bounded_size(server: Server) -> None:
    body = {"tokens": ["Ann"] * 2001, "words": ["Bob"] * 10, "positions": list(range(10))}
    assert refused(server.client.post("/explain", json=body), 400)["field"] == "words"


def test_tokens_may_be_given(server: Server) -> None:
    body = {"tokens": ["Ann", "New York"], "positions": [1]}
    told = server.client.post("/explain", json=body).json()
    assert told["texts"] == ["Ann", "New York"]
    assert [token["position"] for token in told["tokens"]] == [1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": TEXT, "positions": [0, 5]}, "positions.1"),
        ({"text": "", "positions": [0]}, "positions.0"),
        ({"text": TEXT, "positions": [-1]}, "positions.0"),
        ({"text": TEXT, "positions": []}, "positions"),
        ({"text": TEXT, "label": "PLACE"}, "label"),
        ({"text": TEXT, "against": "X"}, "against"),
        ({"text": TEXT, "effects": 1000}, "effects"),
        ({"texts": [TEXT]}, "texts"),
    ],
)
def test_a_wrong_field_is_named(server: Server, body: dict[str, Any], field: str) -> None:
    assert refused(server.client.post("/explain", json=body), 400)["field"] == field
