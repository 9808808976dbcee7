"""What a newcomer does first: the commands of the README in a fresh clone, and the wheels."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest

from tests.fresh_environment import ROOT, build_wheel, new_environment, run

pytestmark = pytest.mark.slow


def readme_commands(checkout: Path) -> list[str]:
    readme = (checkout / "README.md").read_text(encoding="utf8")
    return re.findall(r"^```sh\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone: only what is committed is there."""
    folder = tmp_path_factory.mktemp("front_door")
    run(["git", "clone", "--quiet", ROOT, "clone"], folder)
    return folder / "clone"


USE_PACKAGED = """
import spacy

nlp = spacy.load("en_letters")
for word in ("photography", "photograph"):
    for row in ([t._.phoneme for t in nlp(word)], [f"{t._.treecrf_prob:.2f}" for t in nlp(word)]):
        print(*row)
"""


def test_first_command_of_the_readme_trains_and_packages_a_model(
    checkout: Path, tmp_path: Path
) -> None:
    """The model then works in another environment, and a second run has nothing to do."""
    command = readme_commands(checkout)[0]
    assert command.endswith(" && spacy project run all\n")
    report = report_of(run(["bash", "-euo", "pipefail", "-c", command], checkout))
    check_scores(report)
    check_words(report)

    again = run(["bash", "-c", ". .venv/bin/activate && spacy project run all"], checkout)
    skipped = re.findall(r"Skipping '(\w+)-letters'", again)
    assert skipped == ["prepare", "train", "evaluate", "package", "page"]
    assert report_of(again) == report
    run(["bash", "-c", ". .venv/bin/activate && python -m scripts.readme --check"], checkout)

    found = re.search(r"^The packaged model is (\S+\.whl)\. .*\n\n  pip install \1\n", report, re.M)
    assert found
    package = build_wheel(checkout, tmp_path)
    python = new_environment(tmp_path / "venv", package, checkout / found[1])
    run([python, "-m", "pip", "check"], tmp_path)
    printed = run([python, "-c", USE_PACKAGED], tmp_path).splitlines()
    rows = [line.split() for line in report.splitlines()]
    assert all(row.split() in rows for row in printed)


def report_of(shown: str) -> str:
    return shown.rpartition("-m scripts.report")[2]


def check_scores(report: str) -> None:
    scores = re.findall(r"^(word|phoneme) accuracy % +([0-9.]+) ", report, re.M)
    accuracy = {name: float(value) for name, value in scores}
    assert accuracy["phoneme"] > 86.0
    assert accuracy["word"] > 45.0


def check_words(report: str) -> None:
    """Letters stand above their phonemes and these above their probabilities."""
    for word in ("photography", "photograph"):
        rows = re.search(rf"^{' +'.join(word)}\n(.*)\n(.*)$", report, re.M)
        assert rows
        phonemes, probabilities = rows[1].split(), rows[2].split()
        assert len(phonemes) == len(probabilities) == len(word)
        assert phonemes[0] == "F"
        assert any(phoneme.endswith("1") for phoneme in phonemes)
        assert all(0.0 < float(probability) <= 1.0 for probability in probabilities)


def test_second_command_of_the_readme_runs_the_tests(checkout: Path) -> None:
    """Here a few of the tests stand for all, which would include this one."""
    command = readme_commands(checkout)[1]
    assert command.endswith(' && pytest -m "not slow"\n')
    few = command.replace("pytest -m", "pytest tests/engine/chain/test_constraints.py -m")
    assert re.search(r"\d+ passed", run(["bash", "-euo", "pipefail", "-c", few], checkout))


def test_ci_runs_the_second_command_of_the_readme(checkout: Path) -> None:
    """The line of .ci/run that extracts the command gives it, and the next one runs it."""
    lines = (checkout / ".ci" / "run").read_text(encoding="utf8").splitlines()
    extract = next(i for i, line in enumerate(lines) if line.startswith("awk "))
    assert lines[extract].endswith(" README.md > .test-command")
    assert lines[extract + 1] == "bash -euxo pipefail .test-command"
    extracted = run(["bash", "-c", lines[extract].removesuffix(" > .test-command")], checkout)
    assert extracted == readme_commands(checkout)[1]
    assert os.access(checkout / ".ci" / "run", os.X_OK)


USE_INSTALLED = """
from importlib.metadata import version
from pathlib import Path
import spacy_treecrf
from spacy_treecrf import BoostedCRF

assert spacy_treecrf.__version__ == version("spacy-treecrf")
x = [[{"a": "x", "n": 1.5}, {"a": "y", "n": 2.5}]] * 6
model = BoostedCRF(rounds=4, linear_rounds=2).fit(x, [["A", "B"]] * 6)
model.save("model")
print(BoostedCRF.load("model").predict(x[:1]))
print(Path(spacy_treecrf.__file__).parent)
"""


def test_wheel_holds_the_package_alone_and_works(checkout: Path, tmp_path: Path) -> None:
    wheel = build_wheel(checkout, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        files = [Path(name) for name in archive.namelist()]
    assert {path.parts[0].partition("-")[0] for path in files} == {"spacy_treecrf"}
    shipped = {path.suffix for path in files if path.parts[0] == "spacy_treecrf"}
    assert shipped == {".py", ".typed", ".cfg", ".css", ".js"}
    assert not [path for path in files if {"tests", "data", "benchmarks"} & set(path.parts)]
    assert any(path.name == "LICENSE" for path in files)

    python = new_environment(tmp_path / "venv", wheel)
    predicted, place = run([python, "-c", USE_INSTALLED], tmp_path).splitlines()
    assert predicted == "[['A', 'B']]"
    assert Path(place).is_relative_to(tmp_path / "venv")
    config = run([python, "-m", "spacy_treecrf", "init", "ner"], tmp_path)
    assert config == (checkout / "configs" / "ner.cfg").read_text(encoding="utf8")
    run([python, "-m", "pip", "check"], tmp_path)
