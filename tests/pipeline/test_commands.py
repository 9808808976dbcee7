"""spaCy's own commands with the shipped configs, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import spacy
from confection import Config
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from tests.fresh_environment import ROOT, build_wheel, new_environment, run
from tests.pipeline.made_up_docs import letter_docs, word_docs
from tests.pipeline.tiny_pipes import pipe_of

CONFIGS = ROOT / "configs"
NAMES = ["ner", "tagger", "chunk", "hyphenate"]
SCORE = {
    "ner": "ents_f",
    "tagger": "tag_acc",
    "chunk": "spans_chunks_f",
    "hyphenate": "ext_hyphen_acc",
}
SHORT = {"training.max_steps": "2", "components.treecrf.rounds_per_step": "3"}
TEXTS = ["Anna Jones works in Oslo .", "The old man sees Paris .", "Dov likes the red car ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training and development data: words.* and letters.*"""
    folder = tmp_path_factory.mktemp("commands")
    for part, size, seed in [("train", 120, 0), ("dev", 30, 1)]:
        DocBin(docs=word_docs(size, seed), store_user_data=True).to_disk(
            folder / f"words.{part}.spacy"
        )
        DocBin(docs=letter_docs(size, seed), store_user_data=True).to_disk(
            folder / f"letters.{part}.spacy"
        )
    return folder


def data_of(name: str) -> str:
    return "letters" if name == "hyphenate" else "words"


def options(name: str, **more: Any) -> list[str]:
    """The paths of a config's data, and other settings, as a command takes them."""
    data = data_of(name)
    settings = {
        "paths.train": f"{data}.train.spacy",
        "paths.dev": f"{data}.dev.spacy",
        "components.treecrf.model.threads": "1",
        **more,
    }
    return [part for key, value in settings.items() for part in (f"--{key}", str(value))]


def environment() -> dict[str, str]:
    return os.environ | {"ANSI_COLORS_DISABLED": "1", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


def spacy_command(folder: Path, *arguments: str | Path) -> str:
    """What `spacy ...` prints; it must end well and warn of nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "spacy", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    shown = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, f"spacy {arguments}\n{shown}"
    assert "Warning" not in shown, shown
    return shown


def rows(shown: str) -> list[list[str]]:
    """The rows of the table of `spacy train`: epoch, step, losses, scores."""
    return [line.split() for line in shown.splitlines() if re.match(r" *\d+ +\d+ +-?\d", line)]


def train(folder: Path, config: str | Path, output: str, *arguments: str) -> str:
    return spacy_command(folder, "train", config, "--output", output, *arguments)


@pytest.fixture(scope="module")
def outputs(folder: Path) -> dict[str, str]:
    """What `spacy train` printed with each of the configs; the models are in folder/<name>."""
    return {
        name: train(folder, CONFIGS / f"{name}.cfg", name, *options(name, **SHORT))
        for name in NAMES
    }


def changed_config(folder: Path, name: str, new_name: str, **changes: Any) -> Path:
    """A copy of a shipped config; changes are by dotted names, with `__` for the dots."""
    config = load_config(CONFIGS / f"{name}.cfg", interpolate=False)
    for key, value in changes.items():
        *sections, last = key.split("__")
        block: Any = config
        for section in sections:
            block = block[section]
        block[last] = value
    path = folder / f"{new_name}.cfg"
    Config(config).to_disk(path, interpolate=False)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_configs_are_valid(folder: Path, name: str) -> None:
    shown = spacy_command(folder, "debug", "config", CONFIGS / f"{name}.cfg", *options(name))
    assert "Config is valid" in shown


def test_configs_can_be_filled(folder: Path) -> None:
    spacy_command(folder, "init", "fill-config", CONFIGS / "ner.cfg", "filled.cfg")
    treecrf = load_config(folder / "filled.cfg")["components"]["treecrf"]
    assert treecrf["model"]["shrinkage"] > 0
    assert treecrf["features"]["affix_window"] == [0]


@pytest.mark.parametrize(
    ("name", "changes"),
    [("ner", {}), ("hyphenate", {"corpora.train.join": "1"})],  # spaCy refuses few docs
    ids=["ner", "hyphenate"],
)
def test_debug_data(folder: Path, name: str, changes: dict[str, str]) -> None:
    config = CONFIGS / f"{name}.cfg"
    shown = spacy_command(folder, "debug", "data", config, *options(name, **changes))
    assert "Pipeline can be initialized with data" in shown
    assert "Training pipeline: treecrf" in shown


@pytest.mark.slow
def test_labels_are_written_and_used(folder: Path) -> None:
    spacy_command(folder, "init", "labels", CONFIGS / "ner.cfg", "labels", *options("ner"))
    path = folder / "labels" / "treecrf.json"
    assert json.loads(path.read_text(encoding="utf8")) == ["LOC", "PER"]
    path.write_text('["PER", "LOC", "NEVER SEEN"]', encoding="utf8")
    labels = {"@readers": "spacy.read_labels.v1", "path": str(path)}
    config = changed_config(
        folder, "ner", "with_labels", initialize__components={"treecrf": {"labels": labels}}
    )
    train(folder, config, "with_labels", *options("ner", **SHORT))
    nlp = spacy.load(folder / "with_labels" / "model-last")
    assert pipe_of(nlp).labels == ("PER", "LOC", "NEVER SEEN")


@pytest.mark.parametrize("name", NAMES)
def test_training_shows_losses_and_scores_and_saves_pipelines(
    folder: Path, outputs: dict[str, str], name: str
) -> None:
    shown = outputs[name]
    header = next(line for line in shown.splitlines() if line.startswith("E "))
    assert "LOSS TREECRF" in header
    assert SCORE[name].upper()[:10] in header
    table = rows(shown)
    assert [row[1] for row in table] == ["0", "1", "2"]
    losses = [float(row[2]) for row in table]
    assert losses[0] > losses[1] > losses[2] >= 0.0
    assert float(table[-1][-1]) > 0.9
    for model in ("model-best", "model-last"):
        nlp = spacy.load(folder / name / model)
        docs = DocBin().from_disk(folder / f"{data_of(name)}.dev.spacy").get_docs(nlp.vocab)
        scores = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in docs])
        assert scores[SCORE[name]] > 0.9
    assert pipe_of(nlp).shim.trained.rounds == 9
    weights = nlp.config["training"]["score_weights"]
    assert {key: weight for key, weight in weights.items() if weight} == {SCORE[name]: 1.0}


@pytest.mark.parametrize("name", ["ner", "hyphenate"])
def test_evaluate_writes_the_scores_of_the_task_and_of_the_pipe(
    folder: Path, outputs: dict[str, str], name: str
) -> None:
    data = f"{data_of(name)}.dev.spacy"
    spacy_command(folder, "evaluate", f"{name}/model-best", data, "--output", f"{name}.json")
    scores = json.loads((folder / f"{name}.json").read_text(encoding="utf8"))
    best = max(float(row[-1]) for row in rows(outputs[name]))
    assert scores[SCORE[name]] == pytest.approx(best, abs=0.005)  # the table has 2 digits
    assert scores["treecrf_score"] == scores[SCORE[name]]
    assert 0.0 < scores["treecrf_nll"] < 1.0
    assert 0.0 <= scores["treecrf_ece"] < 0.5


@pytest.mark.slow
def test_benchmark_speed(folder: Path, outputs: dict[str, str]) -> None:
    shown = spacy_command(
        folder,
        *("benchmark", "speed", "ner/model-best", "words.dev.spacy"),
        *("--batches", "30", "--batch-size", "10", "--warmup", "1"),
    )
    speed = re.search(r"Mean: ([0-9.]+) words/s", shown)
    assert speed
    assert float(speed[1]) > 100.0


def test_assemble_joins_trained_pipes(folder: Path, outputs: dict[str, str]) -> None:
    config = folder / "assemble.cfg"
    Config(
        {
            "nlp": {"lang": "en", "pipeline": ["tags", "names"]},
            "components": {
                "tags": {"source": str(folder / "tagger/model-best"), "component": "treecrf"},
                "names": {"source": str(folder / "ner/model-best"), "component": "treecrf"},
            },
        }
    ).to_disk(config)
    spacy_command(folder, "assemble", config, "assembled")
    nlp = spacy.load(folder / "assembled")
    assert nlp.pipe_names == ["tags", "names"]
    tags, names = (spacy.load(folder / f"{name}/model-best") for name in ("tagger", "ner"))
    for text in TEXTS:
        doc = nlp(text)
        assert [t.tag_ for t in doc] == [t.tag_ for t in tags(text)]
        assert entities(doc) == entities(names(text))


def entities(doc: Doc) -> list[tuple[str, str, float]]:
    return [(ent.text, ent.label_, ent._.treecrf_prob) for ent in doc.ents]


@pytest.mark.slow
def test_ordinary_batches_are_gathered(folder: Path) -> None:
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": 30, "get_length": None}
    config = changed_config(
        folder,
        *("ner", "batches"),
        training__batcher=batcher,
        training__max_steps=7,
        training__patience=4,
        training__eval_frequency=4,
        components__treecrf__rounds_per_step=4,
        corpora__train__views=["sentences"],  # an epoch is over after the docs, once each
    )
    table = rows(train(folder, config, "batches", *options("ner")))
    assert [row[:2] for row in table] == [["0", "0"], ["1", "4"]]
    assert float(table[-1][-1]) > 0.8
    nlp = spacy.load(folder / "batches" / "model-last")
    assert pipe_of(nlp).shim.trained.rounds == 4, "for the first epoch: no score rises after it"


@pytest.mark.slow
def test_frozen_pipe_feeds_a_trained_one(folder: Path, outputs: dict[str, str]) -> None:
    """The chunker sees nothing but the tags that the frozen tagger sets during training."""
    tagger = {"source": str(folder / "tagger/model-best"), "component": "treecrf"}
    chunker = load_config(CONFIGS / "chunk.cfg", interpolate=False)["components"]["treecrf"]
    chunker["features"].update(attrs={"TAG": [-1, 0, 1]}, prefixes=[], suffixes=[])
    config = changed_config(
        folder,
        *("chunk", "frozen"),
        nlp__pipeline=["tagger", "treecrf"],
        components={"tagger": tagger, "treecrf": chunker},
        training__frozen_components=["tagger"],
        training__annotating_components=["tagger"],
    )
    shown = train(folder, config, "frozen", *options("chunk", **SHORT))
    assert "LOSS TREECRF" in shown
    assert "LOSS TAGGER" not in shown
    assert float(rows(shown)[-1][-1]) > 0.9
    nlp = spacy.load(folder / "frozen" / "model-best")
    before = spacy.load(folder / "tagger/model-best")
    assert pipe_of(nlp, "tagger").to_bytes() == pipe_of(before).to_bytes()
    doc = nlp(TEXTS[0])
    assert [span.text for span in doc.spans["chunks"]] == ["Anna Jones", "Oslo"]


@pytest.mark.slow
def test_pipes_train_together_on_each_others_annotation(folder: Path) -> None:
    tagger = load_config(CONFIGS / "tagger.cfg", interpolate=False)["components"]["treecrf"]
    chunker = load_config(CONFIGS / "chunk.cfg", interpolate=False)["components"]["treecrf"]
    chunker["features"].update(attrs={"TAG": [-1, 0, 1]}, prefixes=[], suffixes=[])
    config = changed_config(
        folder,
        *("chunk", "together"),
        nlp__pipeline=["tagger", "treecrf"],
        components={"tagger": tagger, "treecrf": chunker},
        training__annotating_components=["tagger"],
        training__score_weights={"spans_chunks_f": 0.5, "tag_acc": 0.5, "treecrf_score": None},
    )
    shown = train(folder, config, "together", *options("chunk", **SHORT))
    assert "LOSS TAGGER" in shown
    assert "LOSS TREECRF" in shown
    assert float(rows(shown)[-1][-1]) > 0.9
    doc = spacy.load(folder / "together" / "model-best")(TEXTS[1].lower())
    assert [token.tag_ for token in doc][:2] == ["DT", "JJ"]
    assert doc.spans["chunks"][0].text == "the old man"


@pytest.mark.slow
def test_interrupted_training_can_be_resumed(folder: Path) -> None:
    endless = {
        "training.max_steps": "100000",
        "training.patience": "0",
        "components.treecrf.rounds_per_step": "60",
        "components.treecrf.model.shrinkage": "0.05",
    }
    command = [sys.executable, "-m", "spacy", "train", str(CONFIGS / "ner.cfg")]
    process = subprocess.Popen(
        [*command, "--output", "interrupted", *options("ner", **endless)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # pytest may run in the background of a shell that ignores Ctrl-C for it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if len(rows(shown)) == 2:
                break
        time.sleep(0.2)  # into the next step
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0, shown + rest
    assert len(rows(shown)) == 2, shown + rest
    model = folder / "interrupted" / "model-last"
    rounds = pipe_of(spacy.load(model)).shim.trained.rounds
    assert rounds >= 120

    config = changed_config(
        folder, "ner", "resumed", components={"treecrf": {"source": str(model)}}
    )
    paths = ["--paths.train", "words.train.spacy", "--paths.dev", "words.dev.spacy"]
    resumed = rows(train(folder, config, "resumed", *paths, "--training.max_steps", "1"))
    losses = [float(row[2]) for row in resumed]
    assert losses[1] <= losses[0] < 0.1 < float(rows(shown)[0][2])
    nlp = spacy.load(folder / "resumed" / "model-last")
    assert pipe_of(nlp).shim.trained.rounds == rounds + 120


USE_INSTALLED = """
import json, sys
from importlib.metadata import requires
import spacy

nlp = spacy.load("en_names")
docs = list(nlp.pipe(json.loads(sys.argv[1])))
entities = [[(e.text, e.label_, e._.treecrf_prob) for e in doc.ents] for doc in docs]
print(json.dumps({"entities": entities, "requires": requires("en_names"), "path": spacy.__file__}))
"""


@pytest.mark.slow
def test_packaged_pipeline_works_in_a_fresh_environment(
    folder: Path, outputs: dict[str, str], tmp_path: Path
) -> None:
    # An environment of its own: spaCy reads in the wheel's metadata whose module it is.
    ours = build_wheel(ROOT, tmp_path)
    python = new_environment(tmp_path / "venv", ours, "build")
    package = ["package", folder / "ner/model-best", tmp_path, "--name", "names"]
    run([python, "-m", "spacy", *package, "--build", "wheel"], tmp_path)
    (wheel,) = tmp_path.glob("en_names-*/dist/en_names-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".pkl", ".pickle"))]
    # Without an index: both wheels lie in a folder, and the model's names the range of ours.
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for path in (wheel, ours):
        shutil.copy(path, wheels)
    pip = [python, "-m", "pip"]
    run([*pip, "uninstall", "--quiet", "--yes", "spacy-treecrf"], tmp_path)
    run([*pip, "install", "--quiet", "--no-index", "--find-links", wheels, "en_names"], tmp_path)
    run([*pip, "check"], tmp_path)
    installed = json.loads(run([python, "-c", USE_INSTALLED, json.dumps(TEXTS)], tmp_path))
    assert Path(installed["path"]).is_relative_to(tmp_path / "venv")
    assert any(re.match(r"spacy-treecrf\b", line) for line in installed["requires"]), installed
    nlp = spacy.load(folder / "ner/model-best")
    for found, text in zip(installed["entities"], TEXTS, strict=True):
        expected = entities(nlp(text))
        assert [tuple(entity[:2]) for entity in found] == [entity[:2] for entity in expected]
        assert [p for *_, p in found] == pytest.approx([p for *_, p in expected], abs=1e-6)
    assert any(installed["entities"])
