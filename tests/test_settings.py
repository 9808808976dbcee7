"""A setting is defined once: what follows from it, in each place, is compared here.

A setting that exists in one place only makes a test of this file fail.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from spacy.util import registry

import spacy_treecrf
from scripts.site.settings_tables import MARKER, on_page_markdown
from spacy_treecrf.cli.settings import kinds
from spacy_treecrf.cli.train import OPTIONS
from spacy_treecrf.engine.folder_setting import Folder
from spacy_treecrf.engine.rules.rule_setting import Rules
from spacy_treecrf.engine.setting import (
    Boolean,
    Choice,
    Integer,
    Number,
    Setting,
    SettingsBase,
    shown,
)
from spacy_treecrf.pipeline.architectures import HELD_OUT
from spacy_treecrf.storage.state_reader import StateReader

# What 0.1.0 had: arguments of architectures as [type, default], and settings as files hold them.
BEFORE: dict[str, Any] = json.loads(
    Path(__file__).with_name("settings_of_0_1_0.json").read_text(encoding="utf8")
)
NAMES = sorted(kinds())
ARCHITECTURES = {"BoostedMEMM": "MEMM", "PerceptronTagger": "Perceptron", "SECOCCRF": "SECOC"}
# Parameters of estimators that are no settings, and their types.
OTHERS = {"warm_start": "bool", "verbose": "bool", "callback": "callable or None"}
# A header of numpydoc, and the indented lines that follow it.
ENTRY = re.compile(r"^(\w+) : (.+)\n((?:    .+\n?)+)", re.M)


def parameters(name: str) -> dict[str, Any]:
    """The parameters of an estimator with their defaults."""
    found = inspect.signature(getattr(spacy_treecrf, name)).parameters.values()
    return {parameter.name: parameter.default for parameter in found}


def shown_defaults(kind: type[SettingsBase]) -> dict[str, str]:
    settings, defaults = kind.settings(), kind.defaults()
    return {name: settings[name].shown(defaults[name]) for name in settings}


def architecture(name: str) -> Any:
    return registry.architectures.get(f"spacy_treecrf.{ARCHITECTURES.get(name, name)}.v1")


@pytest.mark.parametrize("name", NAMES)
def test_estimators_have_the_settings_with_their_defaults(name: str) -> None:
    settings = kinds()[name]
    assert getattr(spacy_treecrf, name)._settings_type is settings
    assert inspect.signature(settings).parameters.keys() == settings.settings().keys()
    asked = parameters(name)
    assert set(asked) == {*settings.names(), *OTHERS}
    defaults = {each: shown(value) for each, value in asked.items() if each not in OTHERS}
    assert defaults == shown_defaults(settings)


@pytest.mark.parametrize("name", NAMES)
def test_estimators_set_and_show_every_parameter(name: str) -> None:
    estimator = getattr(spacy_treecrf, name)
    marks = {each: object() for each in parameters(name)}
    assert vars(estimator(**marks)) == marks


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_say_of_every_parameter_what_its_setting_says(name: str) -> None:
    doc = inspect.getdoc(getattr(spacy_treecrf, name))
    assert doc is not None
    _, _, section = doc.partition("\nParameters\n----------\n")
    entries = {
        found[1]: (found[2], " ".join(found[3].split())) for found in ENTRY.finditer(section)
    }
    assert list(entries) == list(parameters(name)), "in the order of __init__"
    settings = kinds()[name].settings()
    for each, default in parameters(name).items():
        header, text = entries[each]
        kind = settings[each].type_text if each in settings else OTHERS[each]
        assert header == f"{kind}, default={shown(default)}", each
        if each in settings:
            assert text.startswith(settings[each].help), each
        assert text.endswith("."), each


@pytest.mark.parametrize("name", NAMES)
def test_helps_are_one_sentence_that_can_be_shown_anywhere(name: str) -> None:
    for each, setting in kinds()[name].settings().items():
        assert isinstance(setting, Setting)
        assert re.fullmatch(r"[A-Z][^\n|<>]*[^.]\.", setting.help), each
        assert ". " not in setting.help, each
        assert len(setting.help) <= 95, each


@pytest.mark.parametrize("name", NAMES)
def test_architectures_take_all_settings_but_those_of_held_out_data(name: str) -> None:
    settings = kinds()[name]
    found = inspect.signature(architecture(name)).parameters
    without = set() if name == "FutureFeatureMEMM" else set(HELD_OUT)
    assert set(found) == set(settings.names()) - without
    for each, parameter in found.items():
        if each == "constraints":  # those of the task
            assert (parameter.annotation, parameter.default) == (str | None, None)
        elif each == "base":
            assert parameter.default is parameter.empty
        else:
            assert parameter.default == settings.defaults()[each]


@pytest.mark.parametrize("name", BEFORE["arguments"])
def test_architectures_have_the_arguments_of_0_1_0(name: str) -> None:
    now = {}
    for parameter in inspect.signature(architecture(name)).parameters.values():
        kind = parameter.annotation
        kind = kind.__name__ if kind in (int, float, str, bool) else str(kind)
        default = [] if parameter.default is parameter.empty else [parameter.default]
        now[parameter.name] = [kind, *default]
    for each, argument in BEFORE["arguments"][name].items():
        assert now[each] == argument, each
        assert [type(part) for part in now[each]] == [type(part) for part in argument], each


@pytest.mark.parametrize("name", BEFORE["arguments"])
def test_configs_are_filled_with_every_argument_and_its_default(name: str) -> None:
    block: dict[str, Any] = {"@architectures": f"spacy_treecrf.{name}.v1"}
    if name == "SECOC":
        block["base"] = {"@architectures": "spacy_treecrf.Perceptron.v1"}
    filled = registry.fill({"model": block})["model"]
    for each, (_, *default) in BEFORE["arguments"][name].items():
        if default:
            assert filled[each] == default[0], each
    assert registry.resolve({"model": filled})["model"].shims[0].constraints_of_task


def test_documented_types_are_those_of_the_settings() -> None:
    """Annotations check code and configs; kinds of fields check values: they must agree."""
    for settings in kinds().values():
        for name, parameter in inspect.signature(settings).parameters.items():
            setting = settings.settings()[name]
            words = [word.value for word in getattr(setting, "words", ())]
            types = {Integer: "int", Number: "float", Boolean: "bool", Choice: "str"}
            types |= {Rules: "Sequence[str] | None", Folder: "str | None"}
            expected = [types.get(type(setting), "Base")]
            expected += ["str"] * any(isinstance(word, str) for word in words)
            expected += ["None"] * (None in words)
            assert parameter.annotation == " | ".join(expected), name


@pytest.mark.parametrize("name", BEFORE["stored"])
def test_files_hold_settings_as_0_1_0_did(name: str) -> None:
    settings = next(kind for kind in kinds().values() if kind.__name__ == name)
    for state in BEFORE["stored"][name]:
        again = settings.from_state(StateReader(state)).to_state()
        kept = {each: value for each, value in again.items() if each in state}
        if isinstance(state.get("base"), dict):
            base = kept["base"]
            kept["base"] = {each: base[each] for each in base if each in state["base"]}
        assert json.dumps(kept) == json.dumps(state), "order and types of values as well"


def test_every_setting_of_the_command_line_exists() -> None:
    assert set(OPTIONS) <= set(kinds()["BoostedCRF"].names())
    assert len(OPTIONS) == 17, "an option that was there must remain"


def test_tables_of_the_site_have_a_row_for_every_setting() -> None:
    page = on_page_markdown(f"# Settings\n\n{MARKER}\n\nThe end.\n")
    assert MARKER not in page
    for name, settings in kinds().items():
        _, _, table = page.partition(f"\n### {name}\n\n")
        table = table.partition("\n\n")[0]
        rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
        assert [row[0] for row in rows] == [f"`{each}`" for each in settings.names()]
        for row, setting in zip(rows, settings.settings().values(), strict=True):
            default = shown_defaults(settings)[row[0].strip("`")]
            assert row[1:] == [f"`{default}`", setting.allowed, setting.help]
    assert on_page_markdown("No marker.") == "No marker."
