"""Settings on the command line: `--set`, and the command that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.cli.settings import kinds
from spacy_treecrf.cli.train import OPTIONS
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.setting import Choice, Integer, Number, shown
from spacy_treecrf.storage import container as storage
from tests.cli.calls import QUICK, good, refused
from tests.cli.test_train import load
from tests.columnar.tiny_columns import tiny_file

# Values that go together and take little time.
OTHER = {"family": "joint", "order": "2", "rounds": "3", "linear_rounds": "1", "threads": "1"}
OTHER |= {"gamma": "mixing", "missing": "indicator", "constraints": "observed", "leaves": "7"}
OTHER |= {"rules": "PER once", "spill": "."}


def another(name: str) -> str:
    """A value of a setting, as text, that is not the default."""
    setting, default = Settings.settings()[name], Settings.defaults()[name]
    if name in OTHER:
        return OTHER[name]
    if isinstance(setting, Choice):
        return setting.choices[1]
    if isinstance(setting, Integer):
        return str(setting.low + (default == setting.low))
    if isinstance(setting, Number):
        return str(default / 2 or 0.01)
    return str(not default)


def test_every_setting_can_be_set_and_reaches_the_model(tmp_path: Path) -> None:
    texts = {name: another(name) for name in Settings.names() if name != "beam"}  # see below
    settings = [part for name, text in texts.items() for part in ("--set", f"{name}={text}")]
    output = tmp_path / "m.treecrf"
    good("train", tiny_file(tmp_path), "-o", output, *settings)
    found = load(output).crf.settings
    for name, text in texts.items():
        value = getattr(found, name)
        if Settings.settings()[name].of_the_run:
            assert value == Settings.defaults()[name], name  # no part of a model file
            continue
        assert value != Settings.defaults()[name], name
        shown_value = ", ".join(value) if name == "rules" else str(value)
        assert shown_value == text, name


def test_words_can_be_set(tmp_path: Path) -> None:
    output = tmp_path / "m.treecrf"
    family = ["--family", "separate"]
    good("train", tiny_file(tmp_path), "-o", output, *QUICK, *family, "--set", "beam=2")
    assert load(output).crf.settings.beam == 2
    good("train", tiny_file(tmp_path), "-o", output, *QUICK, "--set", "beam=None", "--force")
    assert load(output).crf.settings.beam is None


def test_resuming_keeps_settings_without_an_option(tmp_path: Path) -> None:
    data, output, whole = tiny_file(tmp_path), tmp_path / "m.treecrf", tmp_path / "whole.treecrf"
    settings = [*QUICK, "--set", "trim=0", "--set", "line_search=true"]
    good("train", data, "-o", whole, *settings)
    good("train", data, "-o", output, *settings[2:], "--rounds", "2")
    good("train", data, "-o", output, "--resume", "--rounds", "4", "--threads", "1")
    states = [storage.dump(load(path).crf.to_state()) for path in (output, whole)]
    assert states[0] == states[1]
    assert load(output).crf.settings.trim == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "leaves=0"], "setting 'leaves' is 0; use an integer from 1 to 32768. Most"),
        (["--set", "leaves=many"], "setting 'leaves' is 'many'; use an integer from 1"),
        (["--set", "unbiased=perhaps"], "setting 'unbiased' is 'perhaps'; use True or False"),
        (["--set", "gamma=ray"], "setting 'gamma' is 'ray'; use one of 'local', 'mixing'"),
        (["--set", "leafs=3"], "there is no setting 'leafs'; do you mean 'leaves'?"),
        (["--set", "qqq=3"], "there is no setting 'qqq'; `spacy-treecrf settings` shows all"),
        (["--set", "leaves"], "--set has 'leaves'; use name=value"),
        (["--set", "trim=0", "--set", "trim=0.1"], "setting 'trim' is given twice"),
        (["--leaves", "3", "--set", "leaves=3"], "setting 'leaves' is given twice"),
        (["--set", "order=2", "--set", "family=separate"], "setting 'order' is 2; use 0 or 1"),
    ],
)
def test_bad_settings_are_refused_before_any_work(
    tmp_path: Path, options: list[str], message: str
) -> None:
    """Before the data are read: there are none."""
    assert message in refused("train", tmp_path / "none", "-o", tmp_path / "m.treecrf", *options)


def test_options_show_help_choices_and_default_of_their_settings() -> None:
    shown_help = " ".join(good("train", "--help").split())
    for name in OPTIONS:
        setting, default = Settings.settings()[name], Settings.defaults()[name]
        assert f"--{name.replace('_', '-')} " in shown_help
        assert setting.help in shown_help
        assert name == "rounds" or f"default: {default}]" in shown_help
    assert "[default: 40 to 150, by the number of labels]" in shown_help
    assert "[auto, separate, joint; default: auto]" in shown_help
    assert "--set name=value" in shown_help


@pytest.mark.parametrize("model", list(kinds()))
def test_all_settings_of_a_model_are_shown(model: str) -> None:
    said = good("settings", model)
    settings = kinds()[model]
    for name, setting in settings.settings().items():
        default = settings.defaults()[name]
        line = f"{name} = {setting.shown(default)}\n"
        assert said.startswith(line) or f"\n{line}" in said
        assert f"{setting.help} Use {setting.allowed}." in " ".join(said.split())


def test_the_settings_shown_are_those_that_train_takes() -> None:
    assert good("settings") == good("settings", "BoostedCRF")
    assert f"leaves = {shown(Settings().leaves)}\n" in good("settings")
    assert "there is no model 'CRF'; use one of BoostedCRF" in refused("settings", "CRF")
