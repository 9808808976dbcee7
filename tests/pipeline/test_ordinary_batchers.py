"""The config that `spacy init config` writes, whose batches are small parts of the corpus."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config, registry

from spacy_treecrf.corpora import find_corpus, prepare_corpus
from tests.cli.calls import good
from tests.pipeline.made_up_docs import word_docs
from tests.pipeline.test_commands import rows, spacy_command, train

CONFIGS = Path(__file__).parents[2] / "configs"
PATHS = ["--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
ONE_THREAD = ["--components.treecrf.model.threads", "1"]


def init_config(folder: Path) -> None:
    spacy_command(folder, "init", "config", "-p", "treecrf", "plain.cfg")


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    for part, size, seed in (("train", 120, 0), ("dev", 30, 1)):
        DocBin(docs=word_docs(size, seed)).to_disk(tmp_path / f"{part}.spacy")
    init_config(tmp_path)
    return tmp_path


def test_a_pipe_that_names_no_model_has_the_settings_of_the_ready_config_of_entities() -> None:
    ready = load_config(CONFIGS / "ner.cfg").interpolate()["components"]["treecrf"]["model"]
    plain = spacy.blank("en").add_pipe("treecrf").model
    assert plain.shims[0].settings == registry.resolve({"model": ready})["model"].shims[0].settings


def test_a_pipe_that_names_no_features_has_those_of_the_ready_config_of_entities() -> None:
    ready = load_config(CONFIGS / "ner.cfg").interpolate()["components"]["treecrf"]["features"]
    own = registry.fill({"features": {"@misc": "spacy_treecrf.TokenFeatures.v2"}})["features"]
    # Without vectors their window says nothing.
    assert {name: own[name] for name in ready if name not in ("@misc", "vector_window")} == {
        name: value for name, value in ready.items() if name not in ("@misc", "vector_window")
    }


def test_settings_of_version_1_keep_their_defaults_beside_those_of_version_2() -> None:
    config = {"model": {"@architectures": "spacy_treecrf.BoostedCRF.v1", "rounds": 7}}
    old = spacy.blank("en").add_pipe("treecrf", config=config).model.shims[0].settings
    assert (old.rounds, old.linear_rounds, old.shrinkage) == (7, 5, 0.6)


def test_debug_config_and_data_know_the_pipe(made_up: Path) -> None:
    assert "Config is valid" in spacy_command(made_up, "debug", "config", "plain.cfg", *PATHS)
    shown = spacy_command(made_up, "debug", "data", "plain.cfg", *PATHS)
    assert "Pipeline can be initialized with data" in shown
    assert "Training data of 'treecrf'" in shown
    assert "120 docs" in shown


@pytest.mark.slow
def test_losses_fall_and_scores_rise(made_up: Path) -> None:
    few = ["--training.eval_frequency", "10", "--training.max_steps", "60", *ONE_THREAD]
    table = rows(train(made_up, "plain.cfg", "out", *PATHS, *few))
    losses = [float(row[2]) for row in table]
    assert losses[-1] < 0.1 * losses[0], table
    assert max(losses) < 2 * losses[0], "no sums over steps"
    assert float(table[-1][-1]) > 0.9


def respelled(source: Path, target: Path, every: int = 1) -> None:
    """Docs with the tokens that spaCy finds in their texts, as users make them from offsets.

    every: Which docs are kept: all, each second one, ...
    """
    nlp = spacy.blank("en")
    docs = []
    for old in list(DocBin().from_disk(source).get_docs(nlp.vocab))[::every]:
        doc = nlp.make_doc(old.text)
        spans = [doc.char_span(e.start_char, e.end_char, e.label_) for e in old.ents]
        doc.set_ents([span for span in spans if span is not None])
        docs.append(doc)
    DocBin(docs=docs).to_disk(target)


def best_score(shown: str) -> float:
    return max(float(row[3]) for row in rows(shown))


@pytest.mark.slow
def test_the_config_of_spacy_is_nearly_as_good_as_ours(tmp_path: Path) -> None:
    if not find_corpus("conll2003").found():
        pytest.skip("TREECRF_CORPORA has no CoNLL-2003")
    for part, files in prepare_corpus("conll2003", tmp_path / "gold", split="published").items():
        respelled(files.path, tmp_path / f"{part}.spacy", 3 if part == "train" else 1)
    init_config(tmp_path)
    good("init", "ner", "-o", tmp_path / "ner.cfg")
    theirs = train(tmp_path, "plain.cfg", "theirs", *PATHS)
    ours = train(tmp_path, "ner.cfg", "ours", *PATHS)
    assert best_score(theirs) > best_score(ours) - 0.5, f"{theirs}\n{ours}"
    assert re.search(r"E +# +LOSS TREECRF", theirs)
