"""The blocks of a config: what they refuse, and what loading them costs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import spacy
from spacy.util import registry
from thinc.api import Config

from spacy_treecrf.features.token_features import DOCUMENT_KINDS, create_token_features
from tests.refusals import assert_refused

BAD: list[tuple[str, Any]] = [
    ("attrs", {"LOWWER": [0]}),
    ("attrs", {"LOWER": []}),
    ("attrs", {"LOWER": [0, 0]}),
    ("attrs", {"LOWER": [1000]}),
    ("attrs", {"LOWER": [0.5]}),
    ("attrs", {"LOWER": [True]}),
    ("attrs", {"LOWER": 0}),
    ("attrs", ["LOWER"]),
    ("prefixes", [0]),
    ("suffixes", [2, 2]),
    ("suffixes", 3),
    ("affix_window", []),
    ("clusters", [-1]),
    ("cluster_window", []),
    ("vectors", 1),
    ("vectors", 256),
    ("vectors", True),
    ("vector_window", ["a"]),
    ("vector_columns", "other"),
    ("extensions", {"a=b": [0]}),
    ("extensions", {"": [0]}),
    ("extensions", {"name": []}),
    ("patterns", {"name": "("}),
    ("patterns", {"name": 5}),
    ("patterns", {"a:b": "x"}),
    ("patterns", ["x"]),
    ("gazetteers", {"name": [1]}),
    ("gazetteers", {"name": ""}),
    ("gazetteers", ["a"]),
    ("gazetteer_from_entities", "yes"),
    ("gazetteer_window", []),
    ("document", ["other"]),
    ("document", ["case", "case"]),
    ("document_window", []),
    ("function", "name"),
    ("function_window", []),
]


@pytest.mark.parametrize(("setting", "value"), BAD)
def test_bad_settings_are_refused_by_name(setting: str, value: Any) -> None:
    assert_refused(lambda: create_token_features(**{setting: value}), f"'{setting}")


CONFIG = r"""
[features]
@misc = "spacy_treecrf.TokenFeatures.v1"
attrs = {"LOWER": [-1,0,1], "TAG": [0]}
prefixes = [2]
clusters = [4,0]
vectors = 8
extensions = {"name": [0]}
patterns = {"year": "^[0-9]{4}\\Z", "dot": "\\."}
gazetteers = {"city": ["New York", "$$5"]}
gazetteer_from_entities = true
document = ["case"]
"""


def test_config_is_resolved_and_filled() -> None:
    config = Config().from_str(CONFIG)
    again = Config().from_str(config.to_str())
    assert again == config
    features = registry.resolve(again)["features"]
    names = [source.name for source in features.sources]
    assert names == ["lexemes", "tag", "gazetteers", "document.case", "_.name"]
    filled = registry.fill(again)["features"]
    assert filled["suffixes"] == [1, 2, 3, 4]
    assert registry.resolve({"features": filled})["features"].reads_annotations


def test_config_with_a_function() -> None:
    @registry.misc("treecrf_test_function.v1")
    def make() -> Any:
        return lambda doc: [{} for _ in doc]

    block = {
        "@misc": "spacy_treecrf.TokenFeatures.v1",
        "function": {"@misc": "treecrf_test_function.v1"},
    }
    features = registry.resolve({"features": block})["features"]
    assert features.sources[-1].name == "function"


def test_bad_config_names_the_setting() -> None:
    config = Config().from_str(CONFIG.replace('"TAG"', '"TAGG"'))
    with pytest.raises(Exception, match="TAGG"):
        registry.resolve(config)


def test_loading_the_registered_functions_does_not_load_numba() -> None:
    code = (
        "import sys\n"
        "from spacy_treecrf.features.token_features import create_token_features as token\n"
        "from spacy_treecrf.features.characters import create_character_features as character\n"
        "from spacy_treecrf.features.tokenizer import create_character_tokenizer\n"
        "token(gazetteers={'a': ['b']}, document=['case'], clusters=[4]); character()\n"
        "assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_state_of_another_config_is_refused() -> None:
    features = create_token_features(gazetteers={"a": ["b"]})
    assert_refused(lambda: create_token_features().from_state(features.to_state()), "gazetteers")
    assert_refused(lambda: features.from_state({}), "'gazetteers'")
    assert_refused(lambda: features.from_state({"gazetteers": 5}), "features.gazetteers")


def test_version_2_differs_in_two_defaults() -> None:
    blocks = {v: {"@misc": f"spacy_treecrf.TokenFeatures.{v}"} for v in ("v1", "v2")}
    filled = registry.fill(blocks)
    first, second = filled["v1"], filled["v2"]
    assert first.pop("document") == []
    assert second.pop("document") == list(DOCUMENT_KINDS)
    assert first["attrs"].pop("ORTH") == [0]
    assert second["attrs"].pop("ORTH") == [-1, 0, 1]
    del first["@misc"], second["@misc"]
    assert first == second
    assert_refused(
        lambda: registry.resolve({"f": {**blocks["v2"], "document": ["other"]}}), "'document"
    )
    own, all_of_it, none = (
        registry.resolve({"f": block})["f"]
        for block in (
            blocks["v2"],
            {**blocks["v1"], "document": list(DOCUMENT_KINDS)},
            {**blocks["v2"], "document": []},
        )
    )
    assert len(own.sources) == len(all_of_it.sources) > len(none.sources)


def test_pipes_without_a_features_block_have_version_2_and_others_what_they_name() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("treecrf", "without")
    nlp.add_pipe(
        "treecrf", "with", config={"features": {"@misc": "spacy_treecrf.TokenFeatures.v1"}}
    )
    assert nlp.get_pipe_config("without")["features"]["@misc"] == "spacy_treecrf.TokenFeatures.v2"
    assert nlp.get_pipe_config("with")["features"].get("document", []) == []
