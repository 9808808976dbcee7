"""--force replaces what a command has written, never its inputs nor what is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy

from tests.cli.calls import QUICK, good, process, refused
from tests.columnar.tiny_columns import tiny_file, trained
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp
from tests.tuning.tiny_config import LEAVES, write_config, write_docs


def contents(folder: Path) -> dict[str, bytes | None]:
    """All files and folders below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def assert_refused_and_nothing_lost(folder: Path, *arguments: Any, part: str) -> None:
    before = contents(folder)
    assert part in refused(*arguments, "--force")
    assert contents(folder) == before


def other_names(path: Path) -> list[Path]:
    """The same file under other names: by a detour, a link and a hard link."""
    link, hard = path.with_name("link" + path.suffix), path.with_name("hard" + path.suffix)
    link.symlink_to(path.name)
    os.link(path, hard)
    return [path, path.parent / "." / ".." / path.parent.name / path.name, link, hard]


@pytest.fixture
def work(shared: Path, tmp_path: Path) -> Path:
    """A folder with data, a model and a pipeline of its own."""
    for name in ("train.conll", "test.conll", "good.treecrf"):
        shutil.copy(shared / name, tmp_path / name)
    shutil.copytree(shared / "pipeline", tmp_path / "pipeline")
    return tmp_path


def test_train_does_not_replace_its_data(work: Path) -> None:
    data = work / "train.conll"
    for output in other_names(data):
        call = ["train", data, "-o", output, *QUICK]
        assert_refused_and_nothing_lost(work, *call, part="is the input")
    call = ["train", work / "test.conll", "--dev", data, "-o", data, *QUICK]
    assert_refused_and_nothing_lost(work, *call, part="is the input")


def test_train_does_not_replace_what_it_reads_from_the_standard_input(work: Path) -> None:
    data = work / "train.conll"
    before = contents(work)
    with data.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "spacy_treecrf", "train", "-", "-o", data, "--force", *QUICK],
            stdin=file,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 1, done.stderr
    assert "is the input the standard input" in done.stderr
    assert contents(work) == before


def test_tag_evaluate_and_plot_replace_no_input(work: Path) -> None:
    model, data, pipeline = work / "good.treecrf", work / "test.conll", work / "pipeline"
    for command in ("tag", "evaluate"):
        for output in (model, data):
            call = [command, model, data, "-o", output]
            assert_refused_and_nothing_lost(work, *call, part="is the input")
        call = [command, pipeline, data, "-o", pipeline / "config.cfg"]
        assert_refused_and_nothing_lost(work, *call, part="lies in the input")
    picture = model.rename(work / "model.png")
    call = ["plot", picture, "-o", picture]
    assert_refused_and_nothing_lost(work, *call, part="is the input")


def test_a_report_beside_a_model_in_a_folder_may_be_replaced(work: Path) -> None:
    folder = work / "model"
    folder.mkdir()
    (work / "good.treecrf").rename(folder / "model.treecrf")
    call = ["evaluate", folder, work / "test.conll", "-o", folder / "scores.json"]
    good(*call, "--resamples", "0")
    good(*call, "--resamples", "0", "--force")


def test_tune_replaces_none_of_its_inputs(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    docs = tmp_path / "docs"
    docs.mkdir()
    train, dev = write_docs(docs / "train.spacy"), write_docs(tmp_path / "dev.spacy")
    code = tmp_path / "code.py"
    code.write_text("")
    journal = tmp_path / "journal.jsonl"
    journal.write_text("")
    options = ["--train", docs, "--dev", dev, "--code", code, "--journal", journal]
    for output, part in [
        (config, "is the input"),
        (train, "lies in the input"),
        (dev, "is the input"),
        (code, "is the input"),
        (journal, "is the input"),
    ]:
        call = ["tune", config, "-o", output, *options, "--set", f"{LEAVES}=1,2"]
        assert_refused_and_nothing_lost(tmp_path, *call, part=part)


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_corpus_prepare_does_not_replace_its_inputs(part: str, tmp_path: Path) -> None:
    data = tiny_file(tmp_path, f"{part}.conll")
    call = ["corpus", "prepare", "conll", "--input", data, "-o", tmp_path, "--format", "conll"]
    assert_refused_and_nothing_lost(tmp_path, *call, part="is the input")


def test_corpus_prepare_keeps_read_only_files_of_parts_that_it_does_not_write(
    tmp_path: Path,
) -> None:
    data, out = tiny_file(tmp_path, "data"), tmp_path / "out"
    call = ["corpus", "prepare", "conll", "-o", out, "--dev-share", "0"]
    good(*call, *["--input", data] * 3)
    (out / "dev.spacy").chmod(0o444)
    assert_refused_and_nothing_lost(out, *call, *["--input", data] * 2, part="is read-only")


def test_average_does_not_replace_the_files_that_it_averages(tmp_path: Path) -> None:
    data = tiny_file(tmp_path)
    paths = [tmp_path / f"{seed}.treecrf" for seed in range(2)]
    for seed, path in enumerate(paths):
        trained(data, seed=seed, subsample=0.6).save(path)
    for output in other_names(paths[1]):
        call = ["average", *paths, "-o", output]
        assert_refused_and_nothing_lost(tmp_path, *call, part="is the input")


@pytest.fixture
def pipelines(tmp_path: Path) -> Path:
    """A folder that holds two pipelines, and what its user keeps there."""
    out = tmp_path / "out"
    out.mkdir()
    for seed, name in enumerate(("a", "b")):
        model = {"@architectures": "spacy_treecrf.BoostedCRF.v1", "subsample": 0.6, "seed": seed}
        trained_nlp("ents", model=model).to_disk(out / name)
    (out / "thesis.tex").write_text("years of work")
    return out


def test_average_replaces_nothing_but_an_average(pipelines: Path, tmp_path: Path) -> None:
    out, a, b = pipelines, pipelines / "a", pipelines / "b"
    own = tmp_path / "own"
    for output, part in [
        (out, "lie in each other"),
        (a, "lie in each other"),
        (a / "vocab", "lie in each other"),
        (a / "new", "lie in each other"),
    ]:
        call = ["average", a, b, "-o", output]
        assert_refused_and_nothing_lost(tmp_path, *call, part=part)
    good("average", a, b, "-o", own)
    good("average", a, b, "-o", own, "--force")
    for extra in ("notes.txt", "vocab/notes.txt", "figures/one.png"):
        path = own / extra
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        call = ["average", a, b, "-o", own]
        assert_refused_and_nothing_lost(tmp_path, *call, part="which is no part of the new")
        path.unlink()
        if path.parent.name == "figures":
            path.parent.rmdir()
    (own / "meta.json").chmod(0o444)
    assert_refused_and_nothing_lost(tmp_path, "average", a, b, "-o", own, part="is read-only")


def test_average_keeps_links_and_modes_of_the_folder_that_it_replaces(
    pipelines: Path, tmp_path: Path
) -> None:
    own, link = tmp_path / "own", tmp_path / "latest"
    call = ["average", pipelines / "a", pipelines / "b", "-o"]
    good(*call, own)
    link.symlink_to("own")
    own.chmod(0o750)
    (own / "meta.json").chmod(0o600)
    good(*call, link, "--force")
    assert os.readlink(link) == "own"
    assert own.stat().st_mode & 0o777 == 0o750
    assert (own / "meta.json").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["latest", "out", "own"]
    assert pipe_of(spacy.load(link)).labels


def test_outputs_without_force_need_no_more_than_before(work: Path) -> None:
    done = process(["tag", "good.treecrf", "test.conll", "-o", "/dev/stdout"], work)
    assert done.returncode == 0, done.stderr
    assert done.stdout == good("tag", work / "good.treecrf", work / "test.conll")
