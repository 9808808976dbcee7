"""project.yml: what it names exists, what one command needs another makes, and it is documented."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spacy import util
from spacy.schemas import ConfigSchemaInit, ConfigSchemaTraining
from weasel.cli.document import project_document
from weasel.util import load_project_config

from scripts.prepare import TASKS
from scripts.report import SAMPLES
from scripts.reproduce.__main__ import EXPERIMENTS
from scripts.unpack import UNPACKERS
from spacy_treecrf.corpora import CORPORA, find_corpus
from tests.corpora.places import folder_with
from tests.fresh_environment import ROOT

STEPS = ["prepare", "train", "evaluate", "package", "page", "report"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the project: spaCy makes its folders wherever it reads project.yml."""
    shutil.copy(ROOT / "project.yml", tmp_path)
    for name in ("configs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def load(project: Path, task: str) -> dict[str, Any]:
    return load_project_config(project, overrides={"vars.task": task})


def test_every_task_has_a_config_and_a_corpus() -> None:
    assert {path.stem for path in (ROOT / "configs").glob("*.cfg")} == set(TASKS)
    for corpus, split in TASKS.values():
        assert split in find_corpus(corpus).splits
    assert set(SAMPLES) <= set(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_configs_are_valid(task: str) -> None:
    """As `spacy debug config` says."""
    paths = {"paths.train": "train.spacy", "paths.dev": "dev.spacy"}
    nlp = util.load_model_from_config(util.load_config(ROOT / "configs" / f"{task}.cfg", paths))
    config = nlp.config.interpolate()
    util.registry.resolve(config["initialize"], schema=ConfigSchemaInit)
    training = util.registry.resolve(config["training"], schema=ConfigSchemaTraining)
    util.resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    weights = {name for name, weight in config["training"]["score_weights"].items() if weight}
    assert len(weights) == 1
    labelled = nlp.get_pipe("treecrf").task  # type: ignore[attr-defined]
    assert weights <= set(labelled.score_weights)


@pytest.mark.parametrize("task", TASKS)
def test_commands_need_what_is_there_or_was_made_before(project: Path, task: str) -> None:
    config = load(project, task)
    commands = {command["name"]: command for command in config["commands"]}
    made: set[str] = set()
    assert config["workflows"]["all"] == [f"{step}-{task}" for step in STEPS]
    for name in config["workflows"]["all"]:
        command = commands[name]
        for needed in command["deps"]:
            assert needed in made or (project / needed).exists(), f"{name} needs {needed}"
        made.update(command.get("outputs", []))
    assert not [path for path in made if (project / path).is_file()]


def test_each_step_can_be_run_alone_and_each_task_as_a_workflow(project: Path) -> None:
    config = load(project, "ner")
    for step in STEPS:
        assert config["workflows"][step] == [f"{step}-ner"]
    scripts = {c["name"]: c["script"] for c in config["commands"]}
    runs = {name: steps for name, steps in config["workflows"].items() if name not in STEPS}
    del runs["all"]
    assert runs.pop("reproduce") == list(EXPERIMENTS)
    assert runs.pop("future") == ["hao-5.3", "hao-5.4", "hao-5.5"]
    for name in EXPERIMENTS:
        assert scripts[name] == [f"python -m scripts.reproduce --full {name}"]
    assert runs.pop("secoc") == ["secoc-figures"]
    assert runs.pop("gallery") == ["gallery-letters", "gallery-hyphenate"]
    assert set(runs) == {"chunk", "ner", "nettalk", "hyphenate", "protein", "ocr"}
    for name, steps in runs.items():
        tasks = [re.findall(r"--vars\.task (\w+) ", scripts[step][0]) for step in steps]
        assert [name] in tasks
        assert all(task in TASKS for (task,) in tasks)


def test_assets_give_all_files_of_the_corpora(project: Path) -> None:
    assets = load(project, "letters")["assets"]
    for asset in assets:
        assert asset["url"].startswith("https://")
        assert re.fullmatch(r"[0-9a-f]{32}", asset["checksum"])
    places = {Path(asset["dest"]) for asset in assets}
    archives = {place for place in places if place.name in UNPACKERS}
    assert len(archives) == len(UNPACKERS)
    read = {Path("assets", file.path) for corpus in CORPORA.values() for file in corpus.files}
    unpacked = {path for path in read if path.parent in {place.parent for place in archives}}
    # see corpora/conll2002es.md, corpora/ocr.md and corpora/protein8.md
    unpublished = {
        *(
            Path("assets/conll2002", f"{name}.{part}")
            for name in ("esp", "ned")
            for part in ("train", "testa")
        ),
        Path("assets/ocr/letters.tsv"),
        Path("assets/protein8/cullpdb+profile_6133.npy.gz"),
    }
    assert places - archives == read - unpacked - unpublished


@pytest.mark.parametrize("name", [name for name, corpus in CORPORA.items() if corpus.files])
def test_checksums_of_assets_are_those_of_the_corpora(project: Path, name: str) -> None:
    folder = folder_with(name)
    checksums = {asset["dest"]: asset["checksum"] for asset in load(project, "ner")["assets"]}
    for file in find_corpus(name).files:
        if (dest := f"assets/{file.path}") in checksums:
            content = (folder / file.path).read_bytes()
            assert hashlib.md5(content).hexdigest() == checksums[dest]


def tables(markdown: str) -> list[str]:
    """The rows of its tables: what is around them is written by spaCy, each version in its way."""
    return [line for line in markdown.splitlines() if line.startswith("|")]


def test_documentation_is_up_to_date(project: Path) -> None:
    """To renew it: spacy project document --no-emoji --output PROJECT.md"""
    project_document(project, project / "PROJECT.md", no_emoji=True)
    written = (project / "PROJECT.md").read_text(encoding="utf8")
    shown = (ROOT / "PROJECT.md").read_text(encoding="utf8")
    assert tables(shown) == tables(written)
    assert load(project, "letters")["description"].strip() in shown


def run_project(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spacy", "project", "run", *arguments],
        cwd=project,
        env=os.environ | {"ANSI_COLORS_DISABLED": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
def test_second_run_skips_what_is_done_even_after_another_task(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("protein")))
    config = project / "configs" / "protein.cfg"
    config.write_text(re.sub(r"max_steps = \d+", "max_steps = 2", config.read_text()))
    first = run_project(project, "protein")
    assert "Skipping" not in first
    assert re.search(r"token accuracy % +\d\d\.\d\d", first)
    (wheel,) = (project / "packages").glob("protein/xx_protein-*/dist/*.whl")
    assert f"The packaged model is {wheel.relative_to(project)}." in first
    page = (project / "metrics" / "protein.html").read_text(encoding="utf8")
    assert "<h1>training/protein/model-best on corpus/protein/test.spacy</h1>" in page
    run_project(project, "prepare", ".", "--vars.task", "stress")
    second = run_project(project, "protein")
    assert [f"Skipping '{step}-protein'" in second for step in STEPS] == [True] * 5 + [False]
    scores = re.compile(r"token accuracy.*")
    assert scores.findall(second) == scores.findall(first)[-1:]  # the report, after the evaluation
    trained = project / "training" / "protein" / "model-best" / "meta.json"
    before = trained.stat().st_mtime_ns
    config.write_text(re.sub(r"max_steps = \d+", "max_steps = 1", config.read_text()))
    third = run_project(project, "protein")
    assert "Skipping 'prepare-protein'" in third
    assert "Skipping 'train-protein'" not in third
    assert trained.stat().st_mtime_ns != before
