"""Bad settings are refused when the config is resolved, with the setting's name."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import pytest
import spacy
from confection import ConfigValidationError
from spacy.util import load_model_from_config

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.folder_setting import Folder
from spacy_treecrf.engine.limits import MAX_LEAVES
from spacy_treecrf.engine.setting import Boolean, Integer, Number, Setting
from spacy_treecrf.pipeline.architectures import boosted_crf
from tests.pipeline.tiny_pipes import new_nlp, tiny_config

NLP = spacy.blank("xx")  # nothing is ever added to it
NOT_A_NUMBER = [float("nan"), float("inf"), "many", None]


def bad_values(setting: Setting) -> list[Any]:
    """Values just outside of a setting's range, and some that are nothing like it."""
    if isinstance(setting, Integer):
        words = [word.value for word in setting.words]
        others = [value for value in ("many", None) if value not in words]
        return [setting.low - 1, setting.high + 1, 0.5, *others]
    if isinstance(setting, Number):
        too_high = [setting.high * 1.1] if math.isfinite(setting.high) else []
        too_low = setting.low if setting.above else setting.low - 1e-7
        return [too_low, -1.0, *too_high, *NOT_A_NUMBER]
    if isinstance(setting, Folder):
        return ["", 5]
    return ["perhaps", 3] if isinstance(setting, Boolean) else ["unheard of", "", 5]


# A setting of None means that of the task here.
ARCHITECTURE = inspect.signature(boosted_crf).parameters
BAD_MODEL = {
    name: [value for value in bad_values(setting) if not (name == "constraints" and value == "")]
    for name, setting in Settings.settings().items()
    if name in ARCHITECTURE
}
BAD_PIPE: dict[str, list[Any]] = {
    "task": ["chunks", "", "ext", "ents:x", 5, None],
    "sequence": ["paragraph", "", 5],
    "rounds_per_step": [0, -1, "many", None, 0.5],
    "probabilities": ["perhaps", None],
    "min_prob": [-0.1, 1.1, *NOT_A_NUMBER],
    "expected_f1": [-0.1, 1.1, *NOT_A_NUMBER],
    "scorer": ["good"],
}
BAD_FEATURES: dict[str, list[Any]] = {
    "attrs": [{"UNHEARD": [0]}, {"LOWER": []}, {"LOWER": [999]}, {"LOWER": 0}, ["LOWER"]],
    "prefixes": [[0], [1, 1], "1", [99]],
    "suffixes": [[0], [1, 1], "1", [99]],
    "affix_window": [[], [0, 0], "0"],
    "clusters": [[-1], [1, 1], [99]],
    "cluster_window": [[], [0, 0]],
    "vectors": [-1, 1, 256, "many"],
    "vector_window": [[], [0, 0]],
    "vector_columns": ["words"],
    "patterns": [{"open": "("}, ["x"]],
    "pattern_window": [[], [0, 0]],
    "gazetteers": [{"city": 5}, ["x"]],
    "gazetteer_window": [[], [0, 0]],
    "document": [["unheard"], ["case", "case"]],
    "document_window": [[], [0, 0]],
    "extensions": [{"kind": []}, ["kind"]],
    "function": [5],
    "function_window": [[], [0, 0]],
}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}={value}")
        for name, values in table.items()
        for value in values
    ]


def assert_refused(config: dict[str, Any], setting: str) -> None:
    with pytest.raises(ValueError, match=r"treecrf|[Cc]onfig") as caught:
        NLP.add_pipe("treecrf", config=config)
    assert re.search(rf"\b{setting}\b", complaint(caught.value))


def complaint(error: ValueError) -> str:
    """Without the whole config, which spaCy's own errors show behind what is wrong with it."""
    if isinstance(error, ConfigValidationError):
        return " ".join(str(found["loc"]) for found in error.errors)
    return str(error)


def test_every_setting_of_the_model_has_bad_values_here() -> None:
    assert set(BAD_MODEL) == set(ARCHITECTURE)
    assert all(BAD_MODEL.values())


@pytest.mark.parametrize(("setting", "value"), cases(BAD_MODEL))
def test_bad_settings_of_the_model(setting: str, value: Any) -> None:
    assert_refused(tiny_config(model={setting: value}), setting)


@pytest.mark.parametrize(("setting", "value"), cases(BAD_PIPE))
def test_bad_settings_of_the_pipe(setting: str, value: Any) -> None:
    assert_refused(tiny_config(**{setting: value}), setting)


@pytest.mark.parametrize(("setting", "value"), cases(BAD_FEATURES))
def test_bad_settings_of_the_features(setting: str, value: Any) -> None:
    assert_refused(tiny_config(features={setting: value}), setting)


@pytest.mark.parametrize("block", ["model", "features"])
def test_settings_that_do_not_exist(block: str) -> None:
    config = tiny_config(**{block: {"leafs": 5}})
    assert_refused(config, "leafs")


@pytest.mark.parametrize(
    ("block", "setting", "value"), [("model", "leaves", 0), ("features", "prefixes", [0])]
)
def test_a_config_file_is_refused_alike(block: str, setting: str, value: Any) -> None:
    config = new_nlp().config
    config["components"]["treecrf"][block][setting] = value
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{setting}'"):
        load_model_from_config(config, auto_fill=False)


def test_an_order_that_the_family_cannot_have() -> None:
    assert_refused(tiny_config(model={"family": "separate", "order": 2}), "order")


def test_settings_may_be_at_their_limits() -> None:
    model = {
        "order": 4,
        "leaves": MAX_LEAVES,
        "max_bins": 2,
        "trim": 0.0,
        "subsample": 1.0,
        "rounds": 0,
    }
    nlp = new_nlp(model=model, min_prob=1.0, rounds_per_step=1)
    assert nlp.pipe_names == ["treecrf"]
