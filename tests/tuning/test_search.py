"""Parts of the data, trainings, and the search over them."""

from __future__ import annotations

from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_treecrf.tuning.folds import read_docs, write_folds
from spacy_treecrf.tuning.journal import Journal
from spacy_treecrf.tuning.search import Plan, best_of, search
from spacy_treecrf.tuning.training import check_names, load_config, run_training, with_settings
from tests.tuning.tiny_config import LEAVES, LINEAR, write_config, write_docs


def texts(path: Path) -> list[str]:
    return [doc.text for doc in read_docs(path)]


def test_folds_hold_out_every_doc_once(tmp_path: Path) -> None:
    source = write_docs(tmp_path / "all.spacy", repeats=6)
    pairs = write_folds(source, tmp_path, folds=3, hold_out=0.2, seed=0)
    held_out = [text for _, dev in pairs for text in texts(dev)]
    assert sorted(held_out) == sorted(texts(source))
    for train, dev in pairs:
        assert not set(texts(train)) & set(texts(dev))
        assert len(texts(train)) + len(texts(dev)) == len(texts(source))


def test_docs_of_one_text_are_on_one_side(tmp_path: Path) -> None:
    vocab = Vocab()
    docs = [Doc(vocab, words=[f"w{i % 20}"]) for i in range(60)]
    DocBin(docs=docs).to_disk(tmp_path / "all.spacy")
    ((train, dev),) = write_folds(tmp_path / "all.spacy", tmp_path, folds=0, hold_out=0.3, seed=1)
    assert not set(texts(train)) & set(texts(dev))
    assert len(texts(dev)) % 3 == 0


def test_too_few_docs_and_other_files_are_refused(tmp_path: Path) -> None:
    DocBin(docs=[Doc(Vocab(), words=["a"])]).to_disk(tmp_path / "one.spacy")
    with pytest.raises(ValueError, match="1 docs, too few"):
        write_folds(tmp_path / "one.spacy", tmp_path, folds=2, hold_out=0.2, seed=0)
    (tmp_path / "bad.spacy").write_bytes(b"no docs")
    with pytest.raises(ValueError, match=r"bad\.spacy does not hold docs"):
        read_docs(tmp_path / "bad.spacy")
    with pytest.raises(ValueError, match="there is no training corpus"):
        read_docs(tmp_path / "none.spacy")


def test_settings_are_checked_by_name(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path))
    check_names(config, [LEAVES, "training.max_steps", "components.treecrf.model.ridge"])
    with pytest.raises(ValueError, match=r"no setting '.*leafs'; did you mean .*\.leaves"):
        check_names(config, ["components.treecrf.model.leafs"])
    changed = with_settings(config, {LEAVES: 3, "components.treecrf.model.new": 1})
    assert changed["components"]["treecrf"]["model"]["leaves"] == 3
    assert config["components"]["treecrf"]["model"]["leaves"] == 8


def plan_for(tmp_path: Path, **changes: object) -> Plan:
    values: dict[str, object] = {
        "config": load_config(write_config(tmp_path)),
        "trials": [{LINEAR: 2}, {LINEAR: 0, LEAVES: 1}],
        "train": write_docs(tmp_path / "train.spacy", repeats=3),
        "dev": write_docs(tmp_path / "dev.spacy"),
        "folds": 0,
        "hold_out": 0.2,
        "seed": 0,
        **changes,
    }
    return Plan(**values)  # type: ignore[arg-type]


def test_the_better_settings_come_first_and_are_not_trained_twice(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    journal = Journal(tmp_path / "j.jsonl", plan.about())
    trials = search(plan, journal)
    assert [trial.settings for trial in trials] == plan.trials  # trees of one leaf learn nothing
    scores = [trial.score for trial in trials]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[0] > scores[1]
    assert best_of(trials).settings == {LINEAR: 2}
    assert trials[0].results[0].scores["ents_f"] > 0.5
    before = (tmp_path / "j.jsonl").read_bytes()
    again = search(plan, Journal(tmp_path / "j.jsonl", plan.about()))
    assert [trial.score for trial in again] == scores
    assert (tmp_path / "j.jsonl").read_bytes() == before


def test_folds_are_averaged(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, dev=None, folds=2, trials=[{LINEAR: 2}])
    (trial,) = search(plan, Journal(tmp_path / "j.jsonl", plan.about()))
    scores = [result.score for result in trial.results]
    assert len(scores) == 2
    assert None not in scores
    assert trial.score == pytest.approx(sum(s for s in scores if s is not None) / 2)
    assert trial.spread is not None


def test_settings_that_cannot_be_trained_do_not_end_the_search(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, trials=[{LEAVES: 0}, {LEAVES: 8}])
    trials = search(plan, Journal(tmp_path / "j.jsonl", plan.about()))
    assert best_of(trials).settings == {LEAVES: 8}
    assert trials[-1].score is None
    assert "leaves" in str(trials[-1].error)
    with pytest.raises(ValueError, match="no combination of settings could be trained"):
        best_of(trials[-1:])


def test_other_data_are_another_search(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    about = plan.about()
    write_docs(tmp_path / "train.spacy", repeats=4)
    assert plan.about() != about


def test_a_training_is_repeatable(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    config = plan.config.copy()
    config["corpora"]["train"]["path"] = str(plan.train)
    config["corpora"]["dev"]["path"] = str(plan.dev)
    first, second = (run_training(config, {LINEAR: 1}, 0) for _ in range(2))
    assert first.error is None
    assert (first.score, first.scores["ents_f"]) == (second.score, second.scores["ents_f"])
