"""The hyphenator: where hyphens are written, in words of a text and alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Token
from spacy.training import Example

from tests.pipeline.tiny_pipes import TINY_MODEL

WORDS = ["pho-to", "au-to", "o-pen", "ta-ble", "ca-ble", "no-ble"]


def hyphenating(**settings: Any) -> Language:
    """A pipeline that has learned WORDS, a sequence for each word of a text."""
    if not Token.has_extension("hyphen"):
        Token.set_extension("hyphen", default=None)
    tokenizer = {"@tokenizers": "spacy_treecrf.CharacterTokenizer.v1", "words": True}
    nlp = spacy.blank("en", config={"nlp": {"tokenizer": tokenizer}})
    features = {"@misc": "spacy_treecrf.CharacterFeatures.v1", "window": [-2, -1, 0, 1, 2]}
    config = {"task": "ext:hyphen", "model": TINY_MODEL, "features": features}
    pipe = nlp.add_pipe("treecrf", config={**config, "probabilities": True})
    examples = [Example(nlp.make_doc(word.replace("-", "")), gold(nlp, word)) for word in WORDS]
    pipe.initialize(lambda: examples, nlp=nlp)  # type: ignore[attr-defined]
    optimizer = nlp.create_optimizer()
    for _ in range(6):
        nlp.update(examples, sgd=optimizer)
    nlp.add_pipe("treecrf_hyphenator", config=settings)
    return nlp


def gold(nlp: Language, word: str) -> Any:
    doc = nlp.make_doc(word.replace("-", ""))
    followed = {len(word[:i].replace("-", "")) for i, c in enumerate(word) if c == "-"}
    for token in doc:
        token._.hyphen = "yes" if token.i + 1 in followed else "no"
    return doc


def test_each_word_of_a_text_is_hyphenated_as_if_it_were_alone(tmp_path: Path) -> None:
    hyphenating().to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    assert [nlp(w.replace("-", ""))._.hyphenated for w in WORDS] == WORDS
    assert nlp("open photo, 12 table!\n")._.hyphenated == "o-pen pho-to, 12 ta-ble!\n"
    assert nlp("")._.hyphenated == ""
    docs = list(nlp.pipe(["auto cable", "noble"]))
    assert [doc._.hyphenated for doc in docs] == ["au-to ca-ble", "no-ble"]


def test_hyphens_of_little_probability_are_left_out_and_may_be_soft() -> None:
    soft = hyphenating(hyphen="\u00ad")
    assert soft("photo")._.hyphenated == "pho\u00adto"
    sure = hyphenating(probability=1.0)
    assert sure("photo")._.hyphenated == "photo"


def test_hyphens_stand_between_letters_alone() -> None:
    nlp = hyphenating()
    doc = nlp.make_doc("ab 1c.")
    for token in doc:
        token._.hyphen = "yes"
    assert nlp.get_pipe("treecrf_hyphenator")(doc)._.hyphenated == "a-b 1c."


def test_wrong_settings_are_refused() -> None:
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match="'probability' of treecrf_hyphenator is 2"):
        nlp.add_pipe("treecrf_hyphenator", config={"probability": 2})
    nlp.add_pipe("treecrf_hyphenator", config={"attribute": "no_such_attribute"})
    with pytest.raises(ValueError, match=r"no attribute \._\.no_such_attribute"):
        nlp("word")
