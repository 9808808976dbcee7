"""What a newcomer does first: the commands of the README in a fresh clone, and the wheel."""

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


def test_first_command_of_the_readme_runs_the_example(checkout: Path) -> None:
    command = readme_commands(checkout)[0]
    assert command.endswith("python examples/serial_numbers.py\n")
    shown = run(["bash", "-euo", "pipefail", "-c", command], checkout)
    accuracy = re.search(r"([0-9.]+)% of the characters in 500 unseen", shown)
    assert accuracy
    assert float(accuracy[1]) > 90.0
    line = next(line for line in shown.splitlines() if line.startswith("AB-1293-77x"))
    assert "AB MAKER" in line
    assert "1293 NUMBER" in line
    assert "77 CHECK" in line
    assert re.search(r"\(probability 0\.\d+\)|\(probability 1\.000\)", line)


def test_second_command_of_the_readme_runs_the_tests(checkout: Path) -> None:
    """With a few of the tests in the place of all, which would include this one."""
    command = readme_commands(checkout)[1]
    assert command.endswith(' && pytest -m "not slow"\n')
    few = command.replace("pytest -m", "pytest tests/engine/test_constraints.py -m")
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
    assert shipped == {".py", ".typed"}
    assert not [path for path in files if {"tests", "data", "benchmarks"} & set(path.parts)]
    assert any(path.name == "LICENSE" for path in files)

    python = new_environment(tmp_path / "venv", wheel)
    predicted, place = run([python, "-c", USE_INSTALLED], tmp_path).splitlines()
    assert predicted == "[['A', 'B']]"
    assert Path(place).is_relative_to(tmp_path / "venv")
    run([python, "-m", "pip", "check"], tmp_path)
