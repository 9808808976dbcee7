"""`evaluate` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spacy.cli.evaluate import evaluate as spacy_evaluate
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from tests.cli.calls import call, good, process, refused
from tests.columnar.tiny_columns import tiny_rows, write_columns
from tests.pipeline.tiny_pipes import CORPUS, corpus, example, new_nlp, trained_nlp


def test_all_figures_are_shown(shared: Path) -> None:
    shown = good("evaluate", shared / "weak.treecrf", shared / "test.conll", "--resamples", "50")
    for name in (
        "token accuracy %",
        "sequence accuracy %",
        "span precision %",
        "span recall %",
        "span F1 %",
        "NLL per token",
        "calibration error %",
        "95% interval",
        "gold \\ predicted",
    ):
        assert name in shown
    assert any(line.startswith("PER ") for line in shown.splitlines())


def test_json_has_intervals_around_values_and_the_whole_confusion(shared: Path) -> None:
    shown = good(
        "evaluate", shared / "weak.treecrf", shared / "test.conll", "--json", "--resamples", "200"
    )
    found = json.loads(shown)
    accuracy = found["figures"]["token_accuracy"]
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert sum(cell["count"] for cell in found["confusion"]) == found["annotated_tokens"]
    right = sum(c["count"] for c in found["confusion"] if c["gold"] == c["predicted"])
    assert right / found["annotated_tokens"] == pytest.approx(accuracy["value"])
    assert set(found["per_type"]) == {"LOC", "PER"}
    assert sum(own["count"] for own in found["calibration"]) == found["annotated_tokens"]
    assert 0.0 <= found["calibration_floor"] <= 1.0
    assert 0.0 <= found["calibration_by_chance"]["mean"] <= found["calibration_by_chance"]["high"]


def test_output_is_the_json_and_an_existing_one_is_kept(shared: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", shared / "weak.treecrf", shared / "test.conll", "--resamples", "20"]
    output = tmp_path / "scores.json"
    assert "token accuracy %" in good(*arguments, "--output", output)
    assert json.loads(output.read_text()) == json.loads(good(*arguments, "--json"))
    output.write_text("precious")
    assert "exists" in refused(*arguments, "--output", output)
    assert output.read_text() == "precious"
    good(*arguments, "--output", output, "--force")
    assert json.loads(output.read_text())["model"] == str(shared / "weak.treecrf")


def test_seed_decides_the_intervals(shared: Path) -> None:
    arguments = ["evaluate", shared / "weak.treecrf", shared / "test.conll", "--json"]
    assert good(*arguments, "--seed", "1") == good(*arguments, "--seed", "1")
    assert good(*arguments, "--seed", "1") != good(*arguments, "--seed", "2")


def test_pipelines_are_evaluated_on_docs(shared: Path, tmp_path: Path) -> None:
    examples = corpus(new_nlp("ents"), "ents")
    DocBin(docs=[e.reference for e in examples]).to_disk(tmp_path / "gold.spacy")
    shown = good("evaluate", shared / "pipeline", tmp_path / "gold.spacy", "--json")
    found = json.loads(shown)
    assert found["figures"]["span_f1"]["value"] == 1.0
    assert set(found["per_type"]) == {"PERSON", "PLACE"}


def test_docs_are_read_as_in_training(tmp_path: Path) -> None:
    """The reader of the config, which keeps the tokens here, reads docs, but without its limit."""
    nlp = trained_nlp("ents")
    block = {"path": None, "limit": 1, "inputs": ["SENT_START"]}
    nlp.config["corpora"]["dev"] = {"@readers": "spacy_treecrf.Corpus.v1", **block}
    nlp.to_disk(tmp_path / "pipeline")
    docs = [Doc(nlp.vocab, words=["Anna's", "can't"], ents=["B-PERSON", "O"])] * 3
    assert len(nlp.tokenizer("Anna's can't")) > 2
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    shown = good("evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "--json")
    found = json.loads(shown)
    assert (found["sequences"], found["tokens"]) == (3, 6)
    assert "spacy_treecrf.Corpus.v1, as [corpora.dev]" in found["reading"]
    assert "SENT_START" in found["reading"]


def test_docs_are_read_as_text_as_spacy_evaluate_does(shared: Path, tmp_path: Path) -> None:
    nlp = trained_nlp("ents")
    block = {"path": None, "inputs": ["SENT_START"]}
    nlp.config["corpora"]["dev"] = {"@readers": "spacy_treecrf.Corpus.v1", **block}
    nlp.to_disk(tmp_path / "pipeline")
    docs = [e.reference for e in corpus(nlp, "ents", [*CORPUS, "Ann|N|O left|V|O"])]
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    arguments = ["evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "--as-text"]
    found = json.loads(good(*arguments, "--json"))
    theirs = spacy_evaluate(tmp_path / "pipeline", tmp_path / "gold.spacy", silent=True)
    assert found["figures"]["span_f1"]["value"] == pytest.approx(theirs["ents_f"])
    assert theirs["ents_f"] < 1.0
    assert "as `spacy evaluate` does" in good(*arguments)
    assert "tokens unless the spaces between them are unknown" in found["reading"]
    of_columns = [Doc(nlp.vocab, words=["Ann's", "can't"], ents=["B-PERSON", "O"])]
    assert of_columns[0].has_unknown_spaces
    DocBin(docs=of_columns).to_disk(tmp_path / "columns.spacy")
    shown = good("evaluate", tmp_path / "pipeline", tmp_path / "columns.spacy", "--as-text")
    assert "2 annotated tokens" in shown
    message = refused("evaluate", shared / "good.treecrf", shared / "test.conll", "--as-text")
    assert "leave --as-text out" in message


def test_a_pipe_that_expects_a_much_higher_f1_is_told_of(tmp_path: Path) -> None:
    nlp = trained_nlp("ents", steps=1, rounds_per_step=1, expected_f1=0.9)
    other = ["Ann|N|O saw|V|U-PLACE York|N|O", "Lee|N|O left|V|U-PERSON Rome|N|O"]
    docs = [own.reference for own in corpus(nlp, "ents", other)]
    DocBin(docs=docs).to_disk(tmp_path / "other.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    done = call("evaluate", tmp_path / "pipeline", tmp_path / "other.spacy")
    assert "sets spans for an F1 of 90%" in done.stderr
    nlp.get_pipe_config("treecrf")["expected_f1"] = 0.2
    nlp.to_disk(tmp_path / "pipeline")
    done = call("evaluate", tmp_path / "pipeline", tmp_path / "other.spacy")
    assert done.exit_code == 0
    assert "sets spans" not in done.stderr
    positions = trained_nlp(steps=1, rounds_per_step=1, expected_f1=0.9, model={"order": 0})
    positions.to_disk(tmp_path / "positions")  # which keeps the spans of its labels
    done = call("evaluate", tmp_path / "positions", tmp_path / "other.spacy")
    assert done.exit_code == 0
    assert "sets spans" not in done.stderr


def spaced(nlp: Language, text: str, *spans: tuple[int, int, str]) -> Doc:
    """A doc of a text without blanks, each letter of which is a token, with entities."""
    doc = Doc(nlp.vocab, words=list(text), spaces=[False] * len(text))
    doc.ents = [Span(doc, start, end, label=label) for start, end, label in spans]
    return doc


def test_gold_spans_within_tokens_are_missed_as_in_spacy_evaluate(tmp_path: Path) -> None:
    nlp = trained_nlp("ents", expected_f1=0.9)
    nlp.to_disk(tmp_path / "pipeline")
    docs = [own.reference for own in corpus(nlp, "ents")]
    docs += [spaced(nlp, "Rome", (1, 3, "PLACE")), spaced(nlp, "Ann", (0, 1, "PLACE"))]
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    arguments = [tmp_path / "pipeline", tmp_path / "gold.spacy"]
    found = json.loads(good("evaluate", *arguments, "--as-text", "--json"))
    theirs = spacy_evaluate(*arguments, silent=True)
    assert found["unaligned_gold_spans"] == 2
    for measure, name in (("precision", "p"), ("recall", "r"), ("f1", "f")):
        value = found["figures"][f"span_{measure}"]["value"]
        assert value == pytest.approx(theirs[f"ents_{name}"]), measure
    assert found["figures"]["span_recall"]["value"] < 1.0
    for name, score in found["per_type"].items():
        assert score["f1"] == pytest.approx(theirs["ents_per_type"][name]["f"])
    shown = call("evaluate", *arguments, "--as-text")
    gold = sum(score["gold"] for score in found["per_type"].values())
    assert f"2 of {gold} gold spans do not align" in shown.stdout
    good("report", *arguments, "-o", tmp_path / "report.html")
    compared = json.loads(good("compare", *arguments[:1], *arguments, "--json"))
    assert compared["span_f1"]["a"] == pytest.approx(theirs["ents_f"])


def test_nothing_is_advised_about_f1_where_spans_do_not_align(tmp_path: Path) -> None:
    nlp = trained_nlp("ents", steps=1, rounds_per_step=1, expected_f1=0.9)
    nlp.to_disk(tmp_path / "pipeline")
    docs = [own.reference for own in corpus(nlp, "ents", ["Lee|N|O left|V|U-PERSON Rome|N|O"])]
    DocBin(docs=docs).to_disk(tmp_path / "other.spacy")
    assert "sets spans" in call("evaluate", tmp_path / "pipeline", tmp_path / "other.spacy").stderr
    DocBin(docs=[*docs, spaced(nlp, "Rome", (1, 3, "PLACE"))]).to_disk(tmp_path / "other.spacy")
    done = call("evaluate", tmp_path / "pipeline", tmp_path / "other.spacy")
    assert done.exit_code == 0
    assert "sets spans" not in done.stderr


@pytest.mark.parametrize("task", ["ents", "tag"])
def test_data_without_any_token_of_the_pipeline_are_told_of(task: str, tmp_path: Path) -> None:
    nlp = trained_nlp(task)
    nlp.to_disk(tmp_path / "pipeline")
    doc = spaced(nlp, "Rome", (1, 3, "PLACE"))
    for token, tag in zip(doc, "NVNV", strict=True):
        token.tag_ = tag
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    message = refused("evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy")
    assert "its tokens do not align" in message


def test_gold_spans_over_the_end_of_a_sentence_count_once_as_in_spacy_evaluate(
    tmp_path: Path,
) -> None:
    nlp = trained_nlp("ents", sequence="punctuation")
    nlp.to_disk(tmp_path / "pipeline")
    rows = "Mrs|N|B-PERSON .|.|I-PERSON Lee|N|L-PERSON left|V|O Rome|N|U-PLACE .|.|O"
    DocBin(docs=[example(nlp, "ents", rows).reference]).to_disk(tmp_path / "gold.spacy")
    arguments = [tmp_path / "pipeline", tmp_path / "gold.spacy"]
    found = json.loads(good("evaluate", *arguments, "--as-text", "--json"))
    theirs = spacy_evaluate(*arguments, silent=True)
    assert found["sequences"] == 2
    assert sum(score["gold"] for score in found["per_type"].values()) == 2
    assert found["figures"]["span_f1"]["value"] == pytest.approx(theirs["ents_f"])
    assert found["figures"]["span_recall"]["value"] == pytest.approx(theirs["ents_r"])


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        ("good.treecrf", "missing.conll", [], "cannot read"),
        ("good.treecrf", "docs.spacy", [], "is a model for column files"),
        ("good.treecrf", "test.conll", ["--confidence", "1.5"], "confidence is 1.5"),
        ("pipeline", "train.spacy", [], "cannot read"),
    ],
)
def test_bad_input_is_refused(
    shared: Path, model: str, data: str, options: list[str], message: str
) -> None:
    assert message in refused("evaluate", shared / model, shared / data, *options)


def test_data_of_other_columns_or_labels_are_refused(shared: Path, tmp_path: Path) -> None:
    bare = [[row[:2] for row in sentence] for sentence in tiny_rows(3)]
    path = write_columns(tmp_path / "bare.conll", bare)
    assert "expected 3 columns" in refused("evaluate", shared / "good.treecrf", path)
    assert "other labels than B-X" in refused("evaluate", shared / "pipeline", path)
    damaged = tmp_path / "damaged.spacy"
    damaged.write_bytes(b"no docs")
    assert "does not hold docs of spaCy" in refused("evaluate", shared / "pipeline", damaged)


def test_docs_without_annotation_are_refused(shared: Path, tmp_path: Path) -> None:
    docs = [e.predicted for e in corpus(new_nlp("ents"), "ents")]
    DocBin(docs=docs).to_disk(tmp_path / "bare.spacy")
    assert "holds no gold label" in refused(
        "evaluate", shared / "pipeline", tmp_path / "bare.spacy"
    )


def test_the_better_model_is_significantly_better(shared: Path) -> None:
    arguments = [shared / "weak.treecrf", shared / "good.treecrf", shared / "test.conll"]
    found = json.loads(good("compare", *arguments, "--json"))
    assert found["span_f1"]["b"] == 1.0
    assert found["span_f1"]["interval"]["low"] > 0
    assert found["span_f1"]["p_value"] < 0.05
    assert found["mcnemar"]["only_a"] == 0
    assert found["mcnemar"]["only_b"] > 0
    shown = good("compare", *arguments)
    assert "McNemar on tokens: only A right 0" in shown
    assert "span F1 %" in shown


def test_a_model_does_not_differ_from_itself(shared: Path) -> None:
    model = shared / "weak.treecrf"
    found = json.loads(good("compare", model, model, shared / "test.conll", "--json"))
    assert found["mcnemar"]["p_exact"] == 1.0
    assert found["token_accuracy"]["interval"]["value"] == 0.0


def test_a_pipeline_is_compared_with_a_model_for_columns(shared: Path) -> None:
    """BILUO and BIO labels of the same spans."""
    shown = good("compare", shared / "good.treecrf", shared / "pipeline", shared / "test.conll")
    assert "span F1 %" in shown


def test_evaluate_as_a_process(shared: Path) -> None:
    run = process(["evaluate", "good.treecrf", "test.conll", "--threads", "1"], shared)
    assert run.returncode == 0, run.stderr
    assert "token accuracy %" in run.stdout
    assert run.stderr == ""


def test_compare_as_a_process(shared: Path) -> None:
    run = process(["compare", "weak.treecrf", "good.treecrf", "test.conll", "--json"], shared)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["sequences"] == 20
