"""`distill`: students of teachers with probabilities, and of teachers with labels alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Token
from spacy.training.initialize import init_nlp
from spacy.training.loop import train

from spacy_treecrf.distillation.lessons import lessons, read_annotated, read_texts, teaching_pipe
from spacy_treecrf.distillation.student import extensions_read, load_config
from spacy_treecrf.labels.doc_keys import LATTICE
from tests.cli.calls import call, good, refused
from tests.fresh_environment import ROOT
from tests.pipeline.made_up_docs import letter_docs, word_docs
from tests.pipeline.tiny_pipes import new_nlp, pipe_of
from tests.refusals import assert_refused


@Language.component("tests_untidy")
def untidy(doc: Doc) -> Doc:
    """A component that leaves on a doc what no file can hold, a tensor, and two extensions."""
    for name in ("read", "unread"):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)
    doc.user_data["x"] = object()
    doc.tensor = np.ones((len(doc), 3), np.float32)
    for token in doc:
        token._.read = token.text
        token._.unread = object()
    return doc


@spacy.registry.callbacks("tests.InterruptAt.v1")
def interrupt_at(step: int) -> Callable[[Language, dict[str, Any]], None]:
    def before_update(_: Language, info: dict[str, Any]) -> None:
        if info["step"] == step:
            raise KeyboardInterrupt

    return before_update


RULES = [{"label": "LOC", "pattern": name} for name in ("Oslo", "Rome")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config, texts, held-out data, and a teacher that was trained on annotated docs."""
    folder = tmp_path_factory.mktemp("distill")
    for name, size, seed in (("train", 60, 0), ("texts", 40, 1), ("dev", 20, 2)):
        DocBin(docs=word_docs(size, seed)).to_disk(folder / f"{name}.spacy")
    lines = ["Anna Jones works in Oslo .", "Bob sees Paris .", "the old man likes Rome ."] * 10
    (folder / "texts.txt").write_text("\n".join(lines))
    config: Any = spacy.util.load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    config["training"]["max_steps"] = 3
    config["components"]["treecrf"]["model"].update(linear_rounds=3, threads=1)
    config.to_disk(folder / "ner.cfg", interpolate=False)
    config["paths"].update(train=str(folder / "train.spacy"), dev=str(folder / "dev.spacy"))
    (folder / "teacher").mkdir()
    train(init_nlp(config), folder / "teacher")
    rules = spacy.blank("en")
    rules.add_pipe("entity_ruler").add_patterns(RULES)
    rules.to_disk(folder / "rules")
    return folder


def test_a_student_comes_near_to_a_teacher_with_probabilities(folder: Path) -> None:
    output = folder / "student"
    good(
        "distill",
        folder / "teacher" / "model-best",
        folder / "texts.spacy",
        folder / "ner.cfg",
        "-o",
        output,
        "--dev",
        folder / "dev.spacy",
    )
    student, teacher = spacy.load(output / "model-best"), spacy.load(folder / "teacher/model-best")
    assert pipe_of(student).shim.settings.soft_labels == "distill"
    assert pipe_of(student).sequence_labels == pipe_of(teacher).sequence_labels
    for doc in read_texts(folder / "dev.spacy", teacher):
        mine = pipe_of(student).marginals(doc)
        assert np.abs(mine - pipe_of(teacher).marginals(doc)).mean() < 0.03


def test_a_teacher_without_probabilities_is_learned_from_by_its_labels(folder: Path) -> None:
    output = folder / "of_rules"
    good(
        "distill", folder / "rules", folder / "texts.txt", folder / "ner.cfg", "-o", output,
        "--gold", folder / "train.spacy", "--dev", folder / "dev.spacy",
    )  # fmt: skip
    student = spacy.load(output / "model-best")
    assert set(pipe_of(student).labels) == {"LOC", "PER"}  # people are those of the annotated docs
    assert ("Oslo", "LOC") in [(e.text, e.label_) for e in student("he works in Oslo .").ents]


def test_without_held_out_data_a_part_of_the_texts_is_held_out(folder: Path) -> None:
    output = folder / "alone"
    good("distill", folder / "teacher/model-best", folder / "texts.spacy", folder / "ner.cfg", "-o",
         output)  # fmt: skip
    assert (output / "model-best" / "config.cfg").exists()


def test_lessons_keep_tokens_and_sentences_and_forget_labels(folder: Path) -> None:
    teacher = spacy.load(folder / "teacher" / "model-best")
    given = read_annotated(folder / "texts.spacy", teacher)
    plain = list(read_texts(folder / "texts.spacy", teacher))
    assert [[t.text for t in doc] for doc in plain] == [[t.text for t in doc] for doc in given]
    assert not any(doc.ents for doc in plain)
    taught = list(lessons(teacher, teaching_pipe(teacher, None), plain))
    assert all(LATTICE in doc.user_data for doc in taught)
    assert any(doc.ents for doc in taught)
    rules = spacy.load(folder / "rules")
    assert teaching_pipe(rules, None) is None
    told = list(lessons(rules, None, read_texts(folder / "texts.txt", rules)))
    assert not any(LATTICE in doc.user_data for doc in told)


def test_what_cannot_be_distilled_is_refused(folder: Path, tmp_path: Path) -> None:
    teacher, texts, config = folder / "teacher/model-best", folder / "texts.txt", folder / "ner.cfg"
    output = tmp_path / "out"
    said = refused("distill", teacher, tmp_path / "none.txt", config, "-o", output)
    assert "none.txt" in said
    assert "no model" in refused("distill", tmp_path / "model-best", texts, config, "-o", output)
    assert "not a config" in refused("distill", teacher, texts, texts, "-o", output)
    (tmp_path / "bad.spacy").write_bytes(b"no docs")
    said = refused("distill", teacher, tmp_path / "bad.spacy", config, "-o", output)
    assert "does not hold docs" in said
    (tmp_path / "one.txt").write_text("Anna works .")
    assert "--dev" in refused("distill", teacher, tmp_path / "one.txt", config, "-o", output)
    assert not output.exists()


def test_a_config_without_a_treecrf_pipe_is_refused(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.config.to_disk(tmp_path / "blank.cfg")
    assert_refused(lambda: load_config(tmp_path / "blank.cfg", {}), "no component", "treecrf")


def test_a_teacher_of_several_pipes_needs_a_name() -> None:
    nlp = new_nlp()
    nlp.add_pipe("treecrf", name="other")
    assert_refused(lambda: teaching_pipe(nlp, None), "treecrf, other", "--pipe")
    assert teaching_pipe(nlp, "other") is nlp.get_pipe("other")


def test_lessons_are_what_the_blocks_of_training_read_whatever_their_paths_are(
    folder: Path, tmp_path: Path
) -> None:
    config: Any = spacy.util.load_config(folder / "ner.cfg", interpolate=False)
    unread = {**config["corpora"].pop("train"), "path": "not-there.spacy"}
    config["corpora"].update(lessons=unread, dev={**unread})
    config["training"]["train_corpus"] = "corpora.lessons"
    config.to_disk(tmp_path / "other.cfg", interpolate=False)
    output = tmp_path / "student"
    good("distill", folder / "rules", folder / "texts.txt", tmp_path / "other.cfg", "-o", output,
         "--dev", folder / "dev.spacy")  # fmt: skip
    assert set(pipe_of(spacy.load(output / "model-best")).labels) == {"LOC"}


def test_blocks_that_cannot_read_lessons_are_refused_by_name(folder: Path, tmp_path: Path) -> None:
    config: Any = spacy.util.load_config(folder / "ner.cfg", interpolate=False)
    made = {"@readers": "spacy_treecrf.Synthetic.v1"}
    for name, corpora, training, parts in (
        ("synthetic", {"train": made}, {}, ("'path'", "[corpora.train]")),
        ("missing", {}, {"dev_corpus": "corpora.held_out"}, ("'path'", "[corpora.held_out]")),
        ("same", {}, {"dev_corpus": "corpora.train"}, ("both", "'corpora.train'")),
    ):
        changed = config.copy()
        changed["corpora"].update(corpora)
        changed["training"].update(training)
        changed.to_disk(tmp_path / f"{name}.cfg", interpolate=False)
        assert_refused(lambda: load_config(tmp_path / f"{name}.cfg", {}), *parts)  # noqa: B023


def test_students_of_letters_are_taught_doc_by_doc_where_their_config_joins_docs(
    tmp_path: Path,
) -> None:
    for name, size, seed in (("train", 40, 0), ("texts", 30, 1), ("dev", 10, 2)):
        docs = DocBin(docs=letter_docs(size, seed), store_user_data=True)
        docs.to_disk(tmp_path / f"{name}.spacy")
    config: Any = spacy.util.load_config(ROOT / "configs" / "hyphenate.cfg", interpolate=False)
    assert config["corpora"]["train"]["join"] > 1
    config["training"]["max_steps"] = 2
    config["components"]["treecrf"]["model"].update(order=1, leaves=8, threads=1)
    config.to_disk(tmp_path / "letters.cfg", interpolate=False)
    config["paths"].update(train=str(tmp_path / "train.spacy"), dev=str(tmp_path / "dev.spacy"))
    (tmp_path / "teacher").mkdir()
    teacher, _ = train(init_nlp(config), tmp_path / "teacher")
    output = tmp_path / "student"
    good(
        "distill", tmp_path / "teacher/model-last", tmp_path / "texts.spacy",
        tmp_path / "letters.cfg", "-o", output, "--dev", tmp_path / "dev.spacy",
    )  # fmt: skip
    student = spacy.load(output / "model-last")
    assert student.config["corpora"]["train"]["join"] == 1
    assert pipe_of(student).sequence_labels == pipe_of(teacher).sequence_labels


def test_what_a_teacher_leaves_on_docs_is_dropped_unless_the_student_reads_it(
    folder: Path, tmp_path: Path
) -> None:
    teacher = spacy.load(folder / "teacher" / "model-best")
    teacher.add_pipe("tests_untidy")
    teacher.to_disk(tmp_path / "untidy")
    config: Any = spacy.util.load_config(folder / "ner.cfg", interpolate=False)
    config["corpora"]["train"] = {
        "@readers": "spacy_treecrf.Corpus.v1",
        "path": "${paths.train}",
        "inputs": ["SENT_START", "_.read"],
    }
    config.to_disk(tmp_path / "reads.cfg", interpolate=False)
    read = extensions_read(load_config(tmp_path / "reads.cfg", {}))
    docs = list(read_texts(folder / "texts.txt", teacher))
    for doc in lessons(teacher, teaching_pipe(teacher, None), docs, read):
        assert not doc.tensor.size
        assert [token._.read for token in doc] == [token.text for token in doc]
        others = {key if isinstance(key, str) else key[1] for key in doc.user_data}
        assert others == {LATTICE, "read"}
    output = tmp_path / "student"
    good("distill", tmp_path / "untidy", folder / "texts.txt", tmp_path / "reads.cfg", "-o", output,
         "--dev", folder / "dev.spacy")  # fmt: skip
    assert (output / "model-best" / "config.cfg").exists()


@pytest.mark.parametrize(
    "task", ["ext:hyphen", {"@misc": "spacy_treecrf.ExtTask.v1", "attr": "hyphen"}]
)
def test_labels_in_an_extension_are_read(folder: Path, tmp_path: Path, task: Any) -> None:
    config: Any = spacy.util.load_config(folder / "ner.cfg", interpolate=False)
    config["components"]["treecrf"]["task"] = task
    config.to_disk(tmp_path / "ext.cfg", interpolate=False)
    read = extensions_read(load_config(tmp_path / "ext.cfg", {}))
    assert read == {"hyphen", "treecrf_weight"}


@pytest.mark.parametrize(("step", "held"), [(0, ["model-last"]), (2, ["model-best", "model-last"])])
def test_ctrl_c_says_what_the_output_holds(
    folder: Path, tmp_path: Path, step: int, held: list[str]
) -> None:
    config: Any = spacy.util.load_config(folder / "ner.cfg", interpolate=False)
    config["training"]["before_update"] = {"@callbacks": "tests.InterruptAt.v1", "step": step}
    config.to_disk(tmp_path / "interrupted.cfg", interpolate=False)
    output = tmp_path / "student"
    (output / "model-best").mkdir(parents=True)
    (output / "model-best" / "old").touch()
    result = call(
        "distill", folder / "rules", folder / "texts.txt", tmp_path / "interrupted.cfg", "-o",
        output, "--dev", folder / "dev.spacy", "--force",
    )  # fmt: skip
    assert result.exit_code == 130
    assert result.stderr.endswith(f"{output} now holds {' and '.join(held)}\n")
    assert "as before" not in result.stderr
    assert sorted(path.name for path in output.iterdir()) == held
    assert not (output / "model-best" / "old").exists()
    for name in held:
        spacy.load(output / name)
