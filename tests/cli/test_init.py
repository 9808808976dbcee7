"""`init`: configs that are ready for `spacy train`, from the package alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Token
from spacy.util import (
    get_lang_class,
    load_config,
    load_config_from_str,
    load_model_from_config,
)

from spacy_treecrf.configs.ready_configs import OF_WORDS, TASKS, ready_config, with_value
from spacy_treecrf.features import clusters
from tests.cli.calls import call, good, refused
from tests.fresh_environment import ROOT
from tests.pipeline.made_up_docs import letter_docs, word_docs

SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.cfg"))
LABELS = {
    "letters": "phoneme",
    "nettalk": "phoneme_stress",
    "stress": "stress",
    "hyphenate": "hyphen",
    "protein": "structure",
    "protein8": "structure8",
    "ocr": "letter",
}
# Inputs of tokens beside their text, with their lengths.
INPUTS = {"protein8": {"profile": 22, "terminals": 2}, "ocr": {"pixels": 128}}
POS_OF_TAG = {"NNP": "PROPN", "NN": "NOUN", "JJ": "ADJ", "DT": "DET", "VBZ": "VERB", "IN": "ADP"}


@pytest.mark.parametrize("task", SHIPPED)
def test_the_folder_of_configs_has_what_init_writes(task: str, tmp_path: Path) -> None:
    """After a change: spacy-treecrf init TASK -o configs/TASK.cfg --force."""
    output = tmp_path / f"{task}.cfg"
    good("init", task, "-o", output)
    assert output.read_bytes() == (ROOT / "configs" / f"{task}.cfg").read_bytes()


def test_every_shipped_config_is_a_task() -> None:
    assert set(TASKS) == {*SHIPPED, "pos"}
    shown = good("init", "--help")
    for task, what in TASKS.items():
        assert f"{task:10} {what}" in shown


@pytest.mark.parametrize("task", TASKS)
def test_configs_are_printed_without_an_output(task: str) -> None:
    assert good("init", task) == ready_config(task)


def values(text: str) -> dict[str, Any]:
    config = load_config_from_str(text)
    treecrf = config["components"]["treecrf"]
    weights = config["training"]["score_weights"]
    return {
        "lang": config["nlp"]["lang"],
        "task": treecrf["task"],
        "clusters": treecrf["features"].get("clusters"),
        "vectors": treecrf["features"].get("vectors"),
        "judged by": [name for name, weight in weights.items() if weight],
    }


@pytest.mark.parametrize("task", OF_WORDS)
def test_language_and_features_are_as_asked_for(task: str) -> None:
    plain = values(ready_config(task))
    assert (plain["lang"], plain["clusters"], plain["vectors"]) == ("en", [], 0)
    changed = values(ready_config(task, "es", "clusters"))
    assert changed == plain | {"lang": "es", "clusters": [4, 6, 10, 0]}
    assert values(ready_config(task, None, "vectors")) == plain | {"vectors": 255}


def test_comments_are_about_the_language() -> None:
    text = ready_config("ner", "nl")
    assert "lists nl -o lists/nl" in text
    assert "lists en" not in text
    assert "en_core" not in text


@pytest.mark.parametrize("task", OF_WORDS)
@pytest.mark.parametrize("lang", ["zh", "ja", "ko", "th", "vi"])
def test_languages_have_their_own_tokenizer(task: str, lang: str) -> None:
    """Their packages need not be there."""
    own = load_config_from_str(ready_config(task, lang))["nlp"]["tokenizer"]
    assert own == get_lang_class(lang).Defaults.config["nlp"]["tokenizer"]
    assert own["@tokenizers"] != "spacy.Tokenizer.v1"
    plain, changed = (ready_config(task, other).split("[components]") for other in ("es", lang))
    assert plain[1:] == changed[1:]


def test_letters_have_their_own_tokenizer_in_any_language() -> None:
    assert ready_config("ocr", "zh") == ready_config("ocr").replace('"xx"', '"zh"')


def test_a_chinese_pipeline_reads_raw_text() -> None:
    nlp = load_model_from_config(load_config_from_str(ready_config("ner", "zh")), auto_fill=True)
    assert [token.text for token in nlp.make_doc("我在北京")] == ["我", "在", "北", "京"]


def test_what_a_tokenizer_needs_is_told_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pythainlp", None)
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)
    assert "before training, install" in call("init", "ner", "--lang", "th").stderr
    assert call("init", "ner", "--lang", "es").stderr == ""
    assert call("init", "ocr", "--lang", "th").stderr == ""


def test_parts_of_speech_are_a_task_of_their_own() -> None:
    found = values(ready_config("pos"))
    assert (found["task"], found["judged by"]) == ("pos", ["pos_acc"])
    assert values(ready_config("tagger"))["judged by"] == ["tag_acc"]


def test_comments_stay_and_name_the_new_file(tmp_path: Path) -> None:
    output = tmp_path / "my.cfg"
    result = call("init", "ner", "--features", "vectors", "-o", output)
    text = output.read_text(encoding="utf8")
    assert "#   spacy train my.cfg -o out" in text
    changed = set(text.splitlines()) - set(ready_config("ner").splitlines())
    assert len(changed) == 2, "the name, and vectors"
    assert f"spacy train {output}" in result.stderr
    assert "--paths.vectors" in result.stderr


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert "no task 'names'; use one of ner, chunk" in refused("init", "names")
    assert "no features 'all'; use one of plain" in refused("init", "ner", "--features", "all")
    assert "no vectors, which are features of words" in refused(
        *("init", "ocr", "--features", "vectors")
    )
    assert "no language 'zz'" in refused("init", "ner", "--lang", "zz")
    output = tmp_path / "my.cfg"
    good("init", "ner", "-o", output)
    assert "exists; use --force" in refused("init", "chunk", "-o", output)
    good("init", "chunk", "-o", output, "--force")
    assert load_config(output)["components"]["treecrf"]["task"] == "spans:chunks"


def test_values_change_in_their_own_section_only() -> None:
    text = "[a]\nx = 1\n# x = 2\n\n[a.b]\nx = 3\ny = 4\n"
    assert with_value(text, "a.b", "x", "9") == text.replace("x = 3", "x = 9")
    assert with_value(text, "a", "x", "9") == text.replace("x = 1", "x = 9")
    with pytest.raises(ValueError, match=r"no y in \[a\]"):
        with_value(text, "a", "y", "9")


def docs_of(task: str, n: int, seed: int) -> Iterable[Doc]:
    if task in OF_WORDS:
        for doc in word_docs(n, seed):
            for token in doc:
                token.pos_ = POS_OF_TAG.get(token.tag_, "PUNCT")
            yield doc
        return
    for name in INPUTS.get(task, {}):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)
    for doc in letter_docs(n, seed, LABELS[task]):
        for name, length in INPUTS.get(task, {}).items():
            for token in doc:
                token._.set(name, [float(ord(token.text) >> (i % 7) & 1) for i in range(length)])
        yield doc


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_config_trains_through_spacy(task: str, tmp_path: Path) -> None:
    for part, n, seed in (("train", 120, 0), ("dev", 30, 1)):
        docs = DocBin(docs=docs_of(task, n, seed), store_user_data=True)
        docs.to_disk(tmp_path / f"{part}.spacy")
    good("init", task, "-o", tmp_path / "my.cfg")
    command = [sys.executable, "-m", "spacy", "train", "my.cfg", "-o", "out"]
    command += ["--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
    command += ["--training.max_steps", "1", "--components.treecrf.model.threads", "1"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, text=True
    )
    shown = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, shown
    assert "Warning" not in shown
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.meta["performance"]["treecrf_score"] > 0.7, shown


@pytest.mark.parametrize(("lang", "lacks"), [("nl", True), ("es", False), (None, False)])
def test_clusters_that_a_language_lacks_are_told_of_at_once(
    lang: str | None, lacks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if spacy-lookups-data were there, which has clusters of a few languages."""
    tables = {language: {clusters.TABLE: tmp_path} for language in ("de", "en", "es")}
    monkeypatch.setattr(clusters, "_installed_tables", lambda own: tables.get(own, {}))
    language = ["--lang", lang] if lang else []
    result = call("init", "ner", *language, "--features", "clusters", "-o", tmp_path / "ner.cfg")
    assert result.exit_code == 0
    assert ("it has the table for de, en and es" in result.output) == lacks
    assert (tmp_path / "ner.cfg").exists()
