"""Going on with new words in the pipe: grow_features."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_nlp
from spacy.util import load_config_from_str

from spacy_treecrf.configs.ready_configs import ready_config
from tests.pipeline.tiny_pipes import (
    corpus,
    labels_of,
    labels_on,
    new_doc,
    pipe_of,
    train,
    trained_nlp,
)

# Words that the corpus does not have, in the same sentences: only the words can tell.
MORE = [
    "Uma|N|U-PERSON met|V|O Oslo|N|U-PLACE .|.|O",
    "Oslo|N|U-PLACE met|V|O Uma|N|U-PERSON .|.|O",
    "Ines|N|U-PERSON met|V|O Kyiv|N|U-PLACE .|.|O",
    "Kyiv|N|U-PLACE met|V|O Ines|N|U-PERSON .|.|O",
]
# Words alone, so that shapes and endings of new words say nothing.
WORDS: dict[str, Any] = {"attrs": {"LOWER": [0]}, "suffixes": []}


def resumed(tmp_path: Path, **settings: Any) -> Language:
    """A trained pipeline that was stored, loaded with these settings, and is to go on."""
    nlp = trained_nlp("tag", features=WORDS, model={"linear_rounds": 1000})
    nlp.to_disk(tmp_path / "before")
    config = {f"components.treecrf.{key}": value for key, value in settings.items()}
    loaded = spacy.load(tmp_path / "before", config=config)
    loaded.resume_training()
    return loaded


def predicted(nlp: Language, sentences: list[str]) -> list[list[str | None]]:
    return [labels_on(nlp(new_doc(nlp, sentence)), "tag") for sentence in sentences]


SENTENCES = ["Uma|V met|N", "met|N Uma|V", "Oslo|D met|N"]
TAGGED = [sentence.replace(" ", "|O ") + "|O" for sentence in SENTENCES]


@pytest.mark.parametrize("grow", [False, True])
def test_new_words_are_learned_by_a_pipe_that_grows(tmp_path: Path, grow: bool) -> None:
    nlp = resumed(tmp_path, grow_features=grow)
    before = set(pipe_of(nlp).shim.trained.columns.feature_names)
    examples = corpus(nlp, "tag", TAGGED)
    train(nlp, examples, 8)
    after = pipe_of(nlp).shim.trained.columns.feature_names
    assert (set(after) - before == {"lower[0]=uma", "lower[0]=met", "lower[0]=oslo"}) == grow
    right = predicted(nlp, TAGGED) == [labels_of(sentence, "tag") for sentence in TAGGED]
    assert right == grow


def test_growing_in_small_batches_learns_all_words(tmp_path: Path) -> None:
    nlp = resumed(tmp_path, grow_features=True)
    examples = corpus(nlp, "tag", TAGGED)
    for _ in range(10):
        for example in examples:
            nlp.update([example])
    assert predicted(nlp, TAGGED) == [labels_of(sentence, "tag") for sentence in TAGGED]
    names = pipe_of(nlp).shim.trained.columns.feature_names
    assert len(set(names)) == len(names)


def test_what_the_pipe_knew_is_not_lost_before_a_round_is_trained(tmp_path: Path) -> None:
    nlp = resumed(tmp_path, grow_features=True)
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, TAGGED[0])
    before = pipe.marginals(doc).tolist()
    pipe.learner.add(corpus(nlp, "tag", TAGGED))
    assert "lower[0]=uma" in pipe.shim.trained.columns.feature_names
    assert pipe.marginals(doc).tolist() == before


def test_entities_of_new_words_are_learned_and_stored(tmp_path: Path) -> None:
    nlp = trained_nlp(grow_features=True, features=WORDS, model={"linear_rounds": 1000})
    train(nlp, corpus(nlp, "ents", MORE), 8)
    nlp.to_disk(tmp_path / "after")
    again = spacy.load(tmp_path / "after")
    assert pipe_of(again).grow_features
    found = [[ent.text for ent in again(new_doc(again, sentence)).ents] for sentence in MORE]
    assert found == [["Uma", "Oslo"], ["Oslo", "Uma"], ["Ines", "Kyiv"], ["Kyiv", "Ines"]]


@pytest.mark.parametrize("grow", [False, True])
def test_a_pipe_that_spacy_train_sources_grows_if_its_pipeline_is_stored_so(
    tmp_path: Path, grow: bool
) -> None:
    """What stands beside `source` in a config is left out by spaCy."""
    trained_nlp("ents", features=WORDS).to_disk(tmp_path / "first")
    setting = {"components.treecrf.grow_features": grow}
    spacy.load(tmp_path / "first", config=setting).to_disk(tmp_path / "growing")
    docs = [example.reference for example in corpus(spacy.blank("xx"), "ents", MORE)]
    DocBin(docs=docs).to_disk(tmp_path / "more.spacy")
    config = load_config_from_str(ready_config("ner", "xx"))
    config["components"] = {"treecrf": {"source": str(tmp_path / "growing")}}
    config["paths"].update(train=str(tmp_path / "more.spacy"), dev=str(tmp_path / "more.spacy"))
    config["training"].update(max_steps=1)
    nlp = init_nlp(config)
    (tmp_path / "out").mkdir()
    train_nlp(nlp, tmp_path / "out", stdout=StringIO(), stderr=StringIO())
    names = pipe_of(spacy.load(tmp_path / "out" / "model-last")).shim.trained.columns.feature_names
    assert ("lower[0]=uma" in names) == grow


def test_features_of_ones_own_that_cannot_grow_are_refused(tmp_path: Path) -> None:
    nlp = resumed(tmp_path, grow_features=True)
    pipe = pipe_of(nlp)

    class Fixed:
        """Features without a method `grow`."""

        def __init__(self, inner: Any) -> None:
            self.reads_annotations = False
            self.encode = inner.encode

    pipe.learner.features = Fixed(pipe.features)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="the features of the pipe cannot grow"):
        nlp.update(corpus(nlp, "tag", TAGGED))
