"""`train`: what it makes, what it refuses, what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf.columnar.model import ColumnModel, TrainingCurve
from spacy_treecrf.storage import container
from tests.cli.calls import QUICK, call, good, process, refused
from tests.columnar.tiny_columns import tiny_file, tiny_rows, write_columns


def load(path: Path) -> ColumnModel:
    return ColumnModel.from_state(container.read(path))


def test_trains_evaluates_on_held_out_data_and_saves(tmp_path: Path) -> None:
    train, dev = tiny_file(tmp_path), tiny_file(tmp_path, "dev.conll", n=10, seed=5)
    output = tmp_path / "m.treecrf"
    shown = good("train", train, "--dev", dev, "-o", output, *QUICK)
    assert "columns: 1 word, 2 value, 3 label" in shown
    assert "kept round 4 of 4 (dev F1 100.0)" in shown
    assert "held-out: token accuracy 100.00%" in shown
    assert f"saved to {output}" in shown
    model = load(output)
    assert model.crf.potentials.rounds == len(model.curve.held_out_accuracy) == 4
    assert model.crf.labels == ["B-LOC", "B-PER", "I-PER", "O"]


def test_json_says_the_same_for_programs(tmp_path: Path) -> None:
    shown = good("train", tiny_file(tmp_path), "-o", tmp_path / "m.treecrf", *QUICK, "--json")
    result = json.loads(shown)
    assert result["rounds"] == 4
    assert result["columns"] == {"1": "word", "2": "value", "3": "label"}
    assert result["held_out_accuracy"] is None
    assert result["log_likelihood"] < 0
    assert result["interrupted"] is False


def test_settings_and_columns_reach_the_model(tmp_path: Path) -> None:
    output = tmp_path / "m.treecrf"
    options = ["--label-column", "2", "--columns", "3=skip", "--window", "1", "--order", "0"]
    good("train", tiny_file(tmp_path), "-o", output, *QUICK, *options, "--seed", "5")
    model = load(output)
    assert model.template.kinds == ("word", "label", "skip")
    assert model.crf.labels == [".", "N", "V"]
    assert (model.crf.settings.order, model.crf.settings.seed) == (0, 5)
    assert "1.lower[2]" not in model.crf.columns.column_names


def test_numbers_of_threads_do_not_change_the_file(tmp_path: Path) -> None:
    data = tiny_file(tmp_path)
    states = []
    for threads in ("1", "2"):
        output = tmp_path / f"{threads}.treecrf"
        good("train", data, "-o", output, *QUICK, "--threads", threads)
        potentials = load(output).crf.potentials
        states.append(container.dump(potentials.forest.to_state()))
    assert states[0] == states[1]


def test_outputs_that_exist_are_kept_unless_forced(tmp_path: Path) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    output.write_text("precious")
    assert "exists; use --force" in refused("train", data, "-o", output, *QUICK)
    assert output.read_text() == "precious"
    good("train", data, "-o", output, *QUICK, "--force")
    assert load(output).crf.potentials.rounds == 4


def test_folder_as_output_holds_the_model(tmp_path: Path) -> None:
    data = tiny_file(tmp_path)
    good("train", data, "-o", f"{tmp_path}/models/new/", *QUICK)
    assert (tmp_path / "models" / "new" / "model.treecrf").is_file()
    assert "exists" in refused("train", data, "-o", f"{tmp_path}/models/new/", *QUICK)
    assert "100.00" in good("evaluate", tmp_path / "models" / "new", data, "--resamples", "0")


def test_standard_input_is_read(tmp_path: Path) -> None:
    data = tiny_file(tmp_path).read_text()
    good("train", "-", "-o", tmp_path / "m.treecrf", *QUICK, input=data)
    assert (tmp_path / "m.treecrf").is_file()


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("a N X\nb Y\n", [], "data.conll:2: expected 3 columns"),
        ("", [], "has no rows"),
        ("a X\n", ["--dev", "dev.spacy"], "dev.spacy holds docs of spaCy"),
        ("a X\n", ["--columns", "1=word2"], "--columns has '1=word2'"),
        ("a X\n", ["--label-column", "7"], "label column 7"),
        ("a X\n", ["--leaves", "0"], "setting 'leaves' is 0"),
        ("a X\n", ["--family", "both"], "setting 'family' is 'both'"),
        ("a I-X\n", ["--constraints", "bio"], "constraints='bio' do not allow"),
        ("a X\n", ["--dev", "missing.conll"], "cannot read missing.conll"),
        ("a X\n", ["--resume"], "--resume found no model"),
        ("a X\n", ["--grow"], "--grow is for models that go on with --resume"),
        ("a X\n", ["--set", "rules=X twice"], "rule 'X twice' is none that is known"),
        ("a X\n", ["--set", "rules=Y once"], "rule 'Y once' names 'Y', which is no label"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    tmp_path: Path, data: str, options: list[str], message: str
) -> None:
    path = tmp_path / "data.conll"
    path.write_text(data)
    assert message in refused("train", path, "-o", tmp_path / "m.treecrf", *QUICK, *options)
    assert [file.name for file in tmp_path.iterdir()] == ["data.conll"]


def test_wrong_usage_has_exit_code_2(tmp_path: Path) -> None:
    refused("train", tiny_file(tmp_path), code=2)
    refused("train", tiny_file(tmp_path), "-o", "m", "--rounds", "many", code=2)


def test_missing_folder_is_said_before_training(tmp_path: Path) -> None:
    said = refused("train", tiny_file(tmp_path), "-o", tmp_path / "no" / "m.treecrf", *QUICK)
    assert "does not exist; create it first" in said


def test_full_disk_is_said_and_the_old_model_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    output.write_text("precious")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    said = refused("train", data, "-o", output, *QUICK, "--force")
    assert "No space left on device" in said
    assert output.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.treecrf", "train.conll"]


def test_ctrl_c_keeps_the_rounds_and_resume_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    good("train", data, "-o", tmp_path / "whole.treecrf", *QUICK)
    add = TrainingCurve.add

    def stop(curve: TrainingCurve, *args: Any) -> None:
        add(curve, *args)
        if len(curve.log_likelihood) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainingCurve, "add", stop)
    result = call("train", data, "-o", output, *QUICK)
    monkeypatch.undo()
    assert result.exit_code == 130
    assert "--resume goes on" in result.stderr
    assert load(output).crf.potentials.rounds == 3
    good("train", data, "-o", output, "--resume", "--threads", "1")
    assert container.dump(load(output).crf.to_state()) == container.dump(
        load(tmp_path / "whole.treecrf").crf.to_state()
    )


def test_growing_learns_the_words_of_another_file(tmp_path: Path) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    good("train", data, "-o", output, *QUICK)
    known = load(output).crf.columns.feature_names
    other = tmp_path / "other.conll"
    other.write_text("Zeno N B-PER\nsings V O\n\n" * 5)
    further = ["--resume", "--grow", "--rounds", "8", "--linear-rounds", "8"]
    good("train", other, "-o", output, *further, "--threads", "1")
    crf = load(output).crf
    assert crf.potentials.rounds == crf.settings.linear_rounds == 8
    assert crf.columns.feature_names[: len(known)] == known
    assert any("zeno" in name for name in crf.columns.feature_names[len(known) :])


@pytest.mark.parametrize("further", [[], ["--rounds", "4"], ["--rounds", "2"]])
def test_growing_without_rounds_to_learn_is_refused(tmp_path: Path, further: list[str]) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    good("train", data, "-o", output, *QUICK)
    before = output.read_bytes()
    said = refused("train", data, "-o", output, "--resume", "--grow", *further)
    assert "has 4 rounds already" in said
    assert "larger --rounds" in said
    assert output.read_bytes() == before


def test_rules_are_part_of_the_model(tmp_path: Path) -> None:
    data, output = tiny_file(tmp_path), tmp_path / "m.treecrf"
    good("train", data, "-o", output, *QUICK, "--set", "rules=PER once, LOC after PER")
    assert load(output).crf.settings.rules == ("PER once", "LOC after PER")
    tagged = good("tag", output, data)
    for block in tagged.strip().split("\n\n"):
        labels = [line.split()[-1] for line in block.splitlines()]
        assert labels.count("B-PER") <= 1
        assert "B-LOC" not in labels[: labels.index("B-PER") if "B-PER" in labels else None]


def test_ctrl_c_before_the_first_round_saves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_treecrf.columnar.files.read_column_file", stop)
    result = call("train", tiny_file(tmp_path), "-o", tmp_path / "m.treecrf", *QUICK)
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert not (tmp_path / "m.treecrf").exists()


def test_signal_in_a_real_process_keeps_the_rounds(tmp_path: Path) -> None:
    """The process sends itself the signal of Ctrl-C in its third round."""
    program = (
        "import os, signal, sys\n"
        "from spacy_treecrf.columnar.model import TrainingCurve\n"
        "add = TrainingCurve.add\n"
        "def stop(curve, *args):\n"
        "    add(curve, *args)\n"
        "    if len(curve.seconds) == 3: os.kill(os.getpid(), signal.SIGINT)\n"
        "TrainingCurve.add = stop\n"
        "from spacy_treecrf.cli.app import main\n"
        "main()\n"
    )
    arguments = ["train", str(tiny_file(tmp_path)), "-o", str(tmp_path / "m.treecrf"), *QUICK]
    arguments += ["--rounds", "100000"]
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        # a test runner in the background of a shell may ignore the signal, and so would its child
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert run.returncode == 130, run.stderr
    assert load(tmp_path / "m.treecrf").crf.potentials.rounds >= 2
    assert "Traceback" not in run.stderr


def test_as_a_process_it_is_quiet_in_a_pipe(tmp_path: Path) -> None:
    write_columns(tmp_path / "t.conll", tiny_rows())
    run = process(["train", "t.conll", "-o", "m.treecrf", *QUICK], tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.endswith("saved to m.treecrf\n")


@pytest.mark.slow
def test_held_out_text_of_another_kind_does_not_end_training_at_once(tmp_path: Path) -> None:
    """Its likelihood is best before the first tree; its F1 rises long after that."""
    folder = Path(os.environ.get("TREECRF_CORPORA", "nowhere"), "wnut17")
    if not folder.is_dir():
        pytest.skip("TREECRF_CORPORA has no wnut17")
    dev = folder / "emerging.dev.conll"
    results = {}
    for monitor in ("auto", "log_likelihood"):
        command = ["train", folder / "wnut17train.conll", "--dev", dev, "--monitor", monitor]
        shown = good(*command, "-o", tmp_path / f"{monitor}.treecrf", "--json")
        results[monitor] = json.loads(shown)
    assert results["log_likelihood"]["trees"] == 0
    assert results["auto"]["trees"] > 300
    assert results["auto"]["held_out_f1"] > results["log_likelihood"]["held_out_f1"] + 0.04


@pytest.mark.parametrize("option", ["data", "dev"])
def test_on_a_cluster_an_output_that_a_glob_means_is_refused(tmp_path: Path, option: str) -> None:
    pytest.importorskip("distributed")
    parts = tmp_path / "parts"
    parts.mkdir()
    part, other = tiny_file(parts, "a.conll"), tiny_file(tmp_path)
    before = part.read_bytes()
    files = [parts / "*.conll"] if option == "data" else [other, "--dev", parts / "*.conll"]
    there = ["--scheduler", "tcp://127.0.0.1:1", "--force"]
    assert "is the input" in refused("train", *files, "-o", part, *there)
    assert part.read_bytes() == before


WITHOUT_DASK = """
import sys
sys.modules[{missing!r}] = None
from spacy_treecrf.cli.app import main
sys.argv = ["spacy-treecrf", "train", *{arguments!r}, "--scheduler", "tcp://127.0.0.1:1"]
main()
"""


@pytest.mark.parametrize("missing", ["dask", "distributed"])
def test_a_cluster_without_the_extra_says_what_to_install(tmp_path: Path, missing: str) -> None:
    arguments = [str(tiny_file(tmp_path)), "-o", str(tmp_path / "m.treecrf")]
    code = WITHOUT_DASK.format(missing=missing, arguments=arguments)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("treecrf: spacy_treecrf.dask needs ")
    assert "install spacy-treecrf[dask]" in run.stderr
