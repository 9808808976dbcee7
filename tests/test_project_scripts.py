"""The scripts of project.yml: corpora are fetched and unpacked safely, and results are shown."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest
import spacy
import srsly
import typer
from spacy.tokens import DocBin

from scripts.calibrate import BY_DEV, KNOWN, calibrate
from scripts.prepare import TASKS, download, prepare, provide
from scripts.readme import readme
from scripts.report import labelled, lines_to_try, scores
from spacy_treecrf.corpora import CORPORA, find_corpus
from spacy_treecrf.models.calibration.search import Wanted
from tests.corpora.places import folder_with
from tests.pipeline.tiny_pipes import corpus as tiny_corpus
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp


def md5(file: Path) -> str:
    return hashlib.md5(file.read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project without corpora, where the scripts run."""
    monkeypatch.delenv("TREECRF_CORPORA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_project(folder: Path, files: dict[str, Path]) -> Path:
    """A project whose assets are files on this machine."""
    assets = [
        {"dest": dest, "url": file.as_uri(), "checksum": md5(file)} for dest, file in files.items()
    ]
    project = folder / "project.yml"
    srsly.write_yaml(project, {"assets": assets})
    return project


@pytest.mark.parametrize(("task", "split"), [("nonsense", "default"), ("letters", "nonsense")])
def test_prepare_refuses_unknown_tasks_and_splits(
    folder: Path, capsys: pytest.CaptureFixture[str], task: str, split: str
) -> None:
    with pytest.raises(typer.Exit) as stop:
        prepare(task, split)
    assert stop.value.exit_code == 1
    said = capsys.readouterr().err
    assert said.startswith("treecrf: ")
    assert "nonsense" in said
    assert "use one of" in said
    assert not (folder / "corpus").exists()


def test_missing_corpus_is_fetched_and_prepared(folder: Path) -> None:
    source = folder_with("protein")
    files = find_corpus("protein").files
    write_project(folder, {f"assets/{file.path}": source / file.path for file in files})
    prepare("protein")
    assert [(folder / "assets" / file.path).is_file() for file in files] == [True, True]
    assert (folder / "corpus" / "protein" / "test.spacy").is_file()


def test_corpus_in_the_named_folder_is_not_fetched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("protein")))
    prepare("protein")
    assert not (folder / "assets").exists()
    assert "test: 17 sequences, 3,520 tokens" in capsys.readouterr().err


def test_download_that_fails_leaves_nothing(folder: Path) -> None:
    place = folder / "assets" / "data.txt"
    with pytest.raises(OSError, match=r"treecrf: cannot fetch .*put the file at .*data.txt"):
        download((folder / "nothing.txt").as_uri(), place, "0" * 32)
    damaged = folder / "damaged.txt"
    damaged.write_text("not what was published")
    with pytest.raises(ValueError, match=r"treecrf: data.txt has the md5 checksum \w+; expected 0"):
        download(damaged.as_uri(), place, "0" * 32)
    assert not list(place.parent.iterdir())


def test_damaged_archive_is_refused_and_kept(folder: Path) -> None:
    archive = folder / "assets" / "conll2000" / "conll2000.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"half of an archive")
    other = folder / "whole.zip"
    other.write_bytes(b"the whole archive")
    project = write_project(folder, {"assets/conll2000/conll2000.zip": other})
    with pytest.raises(ValueError, match=r"treecrf: conll2000.zip has the md5 checksum"):
        provide(find_corpus("conll2000"), project)
    assert archive.read_bytes() == b"half of an archive"
    assert list(archive.parent.iterdir()) == [archive]


def test_conll2000_is_unpacked(folder: Path) -> None:
    archive = folder / "published.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for name in ("README", "train.txt", "test.txt"):
            files.writestr(f"conll2000/{name}", f"this is {name}")
    project = write_project(folder, {"assets/conll2000/conll2000.zip": archive})
    provide(find_corpus("conll2000"), project)
    written = folder / "assets" / "conll2000"
    assert {path.name for path in written.iterdir()} == {"conll2000.zip", "train.txt", "test.txt"}
    assert (written / "test.txt").read_text() == "this is test.txt"


def test_scores_are_a_table_with_the_names_of_the_task() -> None:
    figure = {"value": 0.61234, "low": 0.6, "high": 0.63}
    metrics = {
        "sequences": 2000,
        "confidence": 0.95,
        "figures": {"token_accuracy": figure, "sequence_accuracy": figure, "nll_per_token": figure},
    }
    assert [re.sub(" +", " ", line) for line in scores("letters", metrics).splitlines()] == [
        "2,000 unseen sequences letters 95% interval",
        "phoneme accuracy % 61.23 60.00 to 63.00",
        "word accuracy % 61.23 60.00 to 63.00",
        "NLL per token 0.6123 0.6000 to 0.6300",
    ]
    assert "token accuracy %" in scores("ner", metrics)


@pytest.mark.parametrize("task", ["tag", "ext:mark"])
def test_tokens_stand_above_their_labels_and_probabilities(task: str) -> None:
    doc = trained_nlp(task)("Anna Lee lives in New York")
    words, labels, probabilities = labelled(doc, task)
    assert words.split() == [token.text for token in doc]
    value = [token.tag_ if task == "tag" else token._.mark for token in doc]
    assert labels.split() == value
    assert [words.index(token.text) for token in doc] == [
        match.start() for match in re.finditer(r"\S+", probabilities)
    ]
    assert all(0.0 < float(probability) <= 1.0 for probability in probabilities.split())


def test_lines_to_try_work(tmp_path: Path) -> None:
    nlp = trained_nlp("ents")
    wheel = Path("packages/ner/en_ner-0.1.0/dist/en_ner-0.1.0-py3-none-any.whl")
    install, start, example = lines_to_try(wheel, "ents", ["Anna lives in Paris"])
    assert install == f"pip install {wheel}"
    assert 'spacy.load("en_ner")' in start
    found = eval(example, {"nlp": nlp})
    assert all(0 < probability <= 1 for _, _, probability in found)
    first, *spans = labelled(nlp("Anna lives in Paris"), "ents")
    assert first == "Anna lives in Paris"
    assert len(spans) == len(found)


def test_corpora_without_files_need_no_project(folder: Path) -> None:
    for name, corpus in CORPORA.items():
        if not corpus.files and not corpus.needs_inputs and corpus.found():
            provide(corpus, folder / "no project.yml")
            assert name in ("cmudict", "synthetic", "salesman")


SHOWN = """Text.

<!-- printed by: python -c "print('loss', {number})" -->
```text
{shown}
```
"""


def test_terminal_output_in_a_text_is_what_its_command_prints(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text(SHOWN.format(number=0.25, shown="something else"))
    with pytest.raises(typer.Exit):
        readme(text, check=True)
    readme(text)
    assert text.read_text() == SHOWN.format(number=0.25, shown="loss 0.25")
    text.write_text(SHOWN.format(number=7, shown="loss 0.25"))
    readme(text, check=True)  # numbers may differ from machine to machine
    assert text.read_text() == SHOWN.format(number=7, shown="loss 0.25")


def test_output_of_a_command_that_fails_is_kept(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text(SHOWN.format(number="1 / 0", shown="loss 0.25"))
    with pytest.raises(typer.Exit):
        readme(text)
    assert text.read_text() == SHOWN.format(number="1 / 0", shown="loss 0.25")


@pytest.mark.parametrize("task", ["stress", "protein", "chunk"])
def test_models_are_calibrated_in_their_place_where_the_task_needs_it(
    folder: Path, capsys: pytest.CaptureFixture[str], task: str
) -> None:
    assert set(TASKS) >= {*BY_DEV, *KNOWN}
    nlp = trained_nlp()
    place = folder / "training" / task / "model-best"
    place.parent.mkdir(parents=True)
    nlp.to_disk(place)
    dev = folder / "corpus" / task / "dev.spacy"
    dev.parent.mkdir(parents=True)
    DocBin(docs=[own.reference for own in tiny_corpus(nlp)]).to_disk(dev)
    calibrate(task)
    trained = pipe_of(spacy.load(place)).shim.trained
    found = trained.temperature
    assert (trained.uncurved is not trained) == BY_DEV.get(task, Wanted()).curve
    assert (found != 1.0) == (task != "chunk")
    if task in KNOWN:
        assert found == KNOWN[task]
    calibrate(task)  # once is enough
    assert pipe_of(spacy.load(place)).shim.trained.temperature == found
    assert ("already" in capsys.readouterr().err) == (task != "chunk")
