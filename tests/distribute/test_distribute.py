"""`spacy-treecrf distribute` writes what `spacy train` writes, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.train import train
from spacy.util import import_file
from thinc.api import Config
from typer.testing import CliRunner

from spacy_treecrf.cli.app import app
from spacy_treecrf.configs.ready_configs import ready_config
from tests.cli.calls import call, refused
from tests.distribute.doc_data import files_of, make_docs, write_corpus

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

SMALL = {
    "training.max_steps": 2,
    "components.treecrf.rounds_per_step": 3,
    "components.treecrf.model.leaves": 8,
    "components.treecrf.model.linear_rounds": 3,
}
# Columns that are there only where a word is long, numbers that are missing, and annotation of a
# pipe in front.
CODE = """
from spacy.util import registry

@registry.misc("distribute_test.v1")
def make():
    def features(doc):
        found = []
        for token in doc:
            values = {"n": None if len(token) % 5 == 0 else token.i * 0.37 + len(token)}
            if len(token) > 5:
                values[f"long{len(token) % 3}"] = token.text[:4]
            found.append({**values, "starts": bool(token.is_sent_start)})
        return found
    return features
"""


def write_config(path: Path, folder: Path, changes: dict[str, Any]) -> Path:
    """A config for the corpus in a folder."""
    config = Config().from_str(ready_config("ner"), interpolate=False)
    places = {"paths.train": str(folder / "train"), "paths.dev": str(folder / "dev")}
    for key, value in {**SMALL, **places, **changes}.items():
        *sections, name = key.split(".")
        block: dict[str, Any] = config
        for section in sections:
            block = block.setdefault(section, {})
        block[name] = value
    config.to_disk(path)
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "train", make_docs(700, seed=0), 10, 10, 300, 690)
    write_corpus(folder / "dev", make_docs(60, seed=1))
    return folder


def distribute(config: Path, output: Path, *options: str) -> None:
    done = CliRunner().invoke(app, ["distribute", str(config), "-o", str(output), *options])
    assert done.exit_code == 0, (done.output, done.exception)


# Interrupts when it is told of the second step.
LOGGER = """
from spacy.util import registry

@registry.loggers("distribute_test.v1")
def make():
    def begin(nlp, stdout, stderr):
        told = []
        def step(info):
            told.append(info)
            if len(told) == 2:
                raise KeyboardInterrupt
        return step, lambda: None
    return begin
"""


def test_models_of_before_are_kept_without_force_and_ctrl_c_says_what_is_there(
    corpus: Path, tmp_path: Path
) -> None:
    code = tmp_path / "logger.py"
    code.write_text(LOGGER, encoding="utf8")
    changes = {"training.logger": {"@loggers": "distribute_test.v1"}, "training.eval_frequency": 1}
    changes["paths.train"] = str(corpus / "dev")
    config = write_config(tmp_path / "ner.cfg", corpus, changes)
    old = tmp_path / "out" / "model-last" / "old"
    old.mkdir(parents=True)
    arguments = [config, "-o", tmp_path / "out", "--code", code, "--workers", "1"]
    assert "exists; name another folder, or replace it by --force" in refused(
        "distribute", *arguments
    )
    assert old.exists()
    result = call("distribute", *arguments, "--force")
    assert result.exit_code == 130
    assert "out holds model-best and model-last of this training, and none of" in result.stderr
    assert "as before" not in result.stderr
    assert not old.exists()
    for name in ("model-best", "model-last"):
        assert spacy.load(tmp_path / "out" / name).pipe_names == ["treecrf"]


def test_a_pipeline_in_the_output_is_not_replaced_and_failing_leaves_no_folder(
    corpus: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    source = {"components.other": {"source": str(output / "model-best")}}
    config = write_config(tmp_path / "ner.cfg", corpus, source)
    (output / "model-best").mkdir(parents=True)
    assert "lie in each other" in refused("distribute", config, "-o", output, "--force")
    config = write_config(tmp_path / "ner.cfg", corpus, {"training.accumulate_gradient": 2})
    assert "accumulate_gradient" in refused("distribute", config, "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def assert_same(found: Path, expected: Path) -> None:
    there, here = files_of(found), files_of(expected)
    assert there.keys() == here.keys()
    assert [name for name in here if here[name] != there[name]] == []


@pytest.mark.parametrize("workers", [1, 3])
def test_folders_of_spacy_and_of_a_cluster_are_equal(
    corpus: Path, tmp_path: Path, workers: int
) -> None:
    changes = {"components.treecrf.features.gazetteer_from_entities": True}
    config = write_config(tmp_path / "ner.cfg", corpus, changes)
    train(config, tmp_path / "local")
    distribute(config, tmp_path / "there", "--workers", str(workers))
    assert_same(tmp_path / "there", tmp_path / "local")


def test_columns_that_other_pipes_and_functions_tell_are_the_same(
    corpus: Path, tmp_path: Path
) -> None:
    code = tmp_path / "features.py"
    code.write_text(CODE, encoding="utf8")
    changes = {
        "nlp.pipeline": ["sentencizer", "treecrf"],
        "components.sentencizer": {"factory": "sentencizer"},
        "components.treecrf.sequence": "sentence",
        "components.treecrf.model.subsample": 0.7,
        "components.treecrf.model.constraints": "observed",
        "components.treecrf.model.missing": "indicator",
        "components.treecrf.features.function": {"@misc": "distribute_test.v1"},
        "components.treecrf.features.function_window": [-1, 0],
        "components.treecrf.features.gazetteer_from_entities": True,
        "corpora.train": {"@readers": "spacy.Corpus.v1", "path": "${paths.train}"},
        "training.annotating_components": ["sentencizer"],
    }
    config = write_config(tmp_path / "ner.cfg", corpus, changes)
    import_file("python_code", code)
    train(config, tmp_path / "local")
    distribute(config, tmp_path / "there", "--workers", "2", "--code", str(code))
    assert_same(tmp_path / "there", tmp_path / "local")
