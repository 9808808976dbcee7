"""The pronouncer: words of a text and alone, stored and loaded, and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.letters.pronouncer import _combined, by_letters, edits
from spacy_treecrf.letters.rescoring import Pronunciation
from tests.pipeline.tiny_pipes import TINY_MODEL

WORDS = {
    "box": ["B", "AA1", "K-S"],
    "fox": ["F", "AA1", "K-S"],
    "bob": ["B", "AA1", "B"],
    "fob": ["F", "AA1", "B"],
    "tofu": ["T", "OW1", "F", "UW2"],
    "robot": ["R", "OW1", "B", "AA2", "T"],
}
SAID = {word: " ".join(labels).replace("-", " ") for word, labels in WORDS.items()}


def untrained(**settings: Any) -> Language:
    """A pipeline for letters, a sequence for each word of a text."""
    if not Token.has_extension("phoneme"):
        Token.set_extension("phoneme", default=None)
    tokenizer = {"@tokenizers": "spacy_treecrf.CharacterTokenizer.v1", "words": True}
    nlp = spacy.blank("en", config={"nlp": {"tokenizer": tokenizer}})
    features = {"@misc": "spacy_treecrf.CharacterFeatures.v1", "window": [-2, -1, 0, 1, 2]}
    config = {"task": "ext:phoneme", "model": TINY_MODEL, "features": features}
    nlp.add_pipe("treecrf", config=config)
    nlp.add_pipe("treecrf_pronouncer", config=settings)
    return nlp


def pronouncing(**settings: Any) -> Language:
    """A pipeline that has learned WORDS."""
    nlp = untrained(**settings)
    nlp.initialize(lambda: examples(nlp))
    for _ in range(6):
        nlp.update(examples(nlp))
    return nlp


@pytest.fixture(scope="module")
def learned() -> bytes:
    """A trained pipeline, as bytes: it is trained once."""
    return pronouncing(keep=3).to_bytes()


def loaded(learned: bytes) -> Language:
    return untrained(keep=3).from_bytes(learned)


def examples(nlp: Language) -> list[Example]:
    return [Example(nlp.make_doc(word), gold(nlp, word)) for word in WORDS]


def gold(nlp: Language, word: str) -> Doc:
    doc = nlp.make_doc(word)
    for token, label in zip(doc, WORDS[word], strict=True):
        token._.phoneme = label
    return doc


def test_words_are_pronounced_alone_and_in_a_text(learned: bytes, tmp_path: Path) -> None:
    nlp = loaded(learned)
    for word, said in SAID.items():
        doc = nlp(word.upper())
        (best, probability), *others = doc._.pronunciations
        assert best == said
        assert len(others) <= 2
        assert 1.0001 > probability > max([p for _, p in others], default=0.0)
        assert [token._.phoneme for token in doc] == WORDS[word]
    doc = nlp("Box, robot!\n")
    assert all(isinstance(own._.pronunciations, list) for own in doc.sents)
    words = [word for word in doc.sents if word._.pronunciations]
    assert [word.text for word in words] == ["Box", "robot"]
    assert [word._.pronunciations[0][0] for word in words] == [SAID["box"], SAID["robot"]]
    (best, probability), *_ = doc._.pronunciations
    assert best == f"{SAID['box']} {SAID['robot']}"
    of_words = [word._.pronunciations[0][1] for word in words]
    assert probability == pytest.approx(of_words[0] * of_words[1])
    assert [nlp(text)._.pronunciations for text in ("", " ?")] == [[], []]

    nlp.to_disk(tmp_path)
    docs = list(spacy.load(tmp_path).pipe(["fob tofu", "zzz"]))
    expected = [nlp(text)._.pronunciations for text in ("fob tofu", "zzz")]
    assert [doc._.pronunciations for doc in docs] == expected


def test_pronunciations_of_stored_docs_are_equal_to_those_before(learned: bytes) -> None:
    nlp = loaded(learned)
    for text in ("box", "box tofu, fob"):
        doc = nlp(text)
        stored = Doc(nlp.vocab).from_bytes(doc.to_bytes())
        assert doc._.pronunciations
        assert stored._.pronunciations == doc._.pronunciations
        words = zip(stored.sents, doc.sents, strict=True)
        assert all(own._.pronunciations == before._.pronunciations for own, before in words)


def test_docs_are_pronounced_in_groups_of_letters() -> None:
    make_doc = untrained().make_doc
    docs = [make_doc(text) for text in ("box", "fob", "", "robot", "tofu")]
    found = [[doc.text for doc in group] for group in by_letters(docs, 5)]
    assert found == [["box", "fob"], ["", "robot"], ["tofu"]]
    assert list(by_letters([], 5)) == []


def test_the_best_of_a_text_is_the_best_of_its_words() -> None:
    stressed = Pronunciation(("B", "AA1"), 0.3, ["B", "AA1"])
    other = Pronunciation(("B", "OW1"), 0.4, ["B", "OW1"])
    word = [stressed, other]  # the best need not be the most probable
    next_word = [Pronunciation(("F",), 0.7, ["F"]), Pronunciation(("V",), 0.3, ["V"])]
    found = _combined([word, next_word], 3)
    assert [said for said, _ in found] == ["B AA1 F", "B OW1 F", "B OW1 V"]
    assert [p for _, p in found] == pytest.approx([0.21, 0.28, 0.12])
    assert _combined([word], 2) == [["B AA1", 0.3], ["B OW1", 0.4]]


def test_scores_count_words_with_and_without_stress(learned: bytes) -> None:
    nlp = loaded(learned)
    scores = nlp.evaluate(examples(nlp))
    assert scores["pronunciation_acc"] == scores["pronunciation_acc_without_stress"] == 1.0
    assert scores["pronunciation_phoneme_error"] == 0.0
    pipe: Any = nlp.get_pipe("treecrf_pronouncer")
    (example,) = [e for e in examples(nlp) if e.text == "tofu"]
    for token, label in zip(example.predicted, ["T", "OW0", "F", "UW2"], strict=True):
        token._.phoneme = label
    scores = pipe.score([example])
    assert list(scores.values()) == [0.0, 1.0, 0.25]
    assert pipe.score([]) == {}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weights": {"luck": 1.0}}, "a number for each of tagger, forward"),
        ({"keep": 0}, "'keep' of treecrf_pronouncer is 0"),
        ({"order": 13}, "'order' of treecrf_pronouncer is 13"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        spacy.blank("en").add_pipe("treecrf_pronouncer", config=settings)


def test_it_needs_a_tagger_and_training(learned: bytes) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf_pronouncer")
    with pytest.raises(ValueError, match="which is not in the pipeline"):
        nlp("box")
    nlp = loaded(learned)
    nlp.get_pipe("treecrf_pronouncer").models = None  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="has learned no words"):
        nlp("box")


def test_damaged_files_are_refused(learned: bytes, tmp_path: Path) -> None:
    nlp = loaded(learned)
    nlp.to_disk(tmp_path)
    file = tmp_path / "treecrf_pronouncer" / "word_models"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"word_models.*truncated"):
        spacy.load(tmp_path)


def test_edits_are_the_fewest() -> None:
    assert edits("abc", "abc") == 0
    assert edits("abc", "") == edits("", "abc") == 3
    assert edits("kitten", "sitting") == 3


@pytest.mark.parametrize("curve", [None, TemperatureCurve(-0.2, 0.9, -0.3)])
def test_calibration_of_the_tagger_changes_no_pronunciation(
    learned: bytes, curve: TemperatureCurve | None
) -> None:
    nlp, calibrated = loaded(learned), loaded(learned)
    shim = calibrated.get_pipe("treecrf").shim  # type: ignore[attr-defined]
    shim.learned = shim.trained.cooled(1.5).curved(curve)
    for word in ("fobot", "box tofu", "xobu"):
        expected, found = (own(word)._.pronunciations for own in (nlp, calibrated))
        assert [said for said, _ in found] == [said for said, _ in expected]
        assert [p for _, p in found] == pytest.approx([p for _, p in expected], abs=2e-3)
