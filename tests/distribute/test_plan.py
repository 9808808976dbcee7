"""The parts of a training corpus, as workers are told of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from thinc.api import Config

pytest.importorskip("distributed")

from spacy_treecrf.distribute.plan import parts_of
from tests.distribute.doc_data import make_docs, write_corpus


@pytest.mark.parametrize("given", ["corpus", "corpus/", ".", "corpus/*.spacy", "./corpus/*"])
def test_relative_paths_are_told_as_absolute_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    write_corpus(tmp_path / "corpus", make_docs(4, seed=0), 2)
    monkeypatch.chdir(tmp_path)
    block = {"training": {"train_corpus": "corpora.train"}, "corpora": {"train": {"path": given}}}
    expected = [tmp_path / "corpus" / name for name in ("part00.spacy", "part01.spacy")]
    assert [Path(part.path) for part in parts_of(Config(block))] == expected
    assert all(Path(part.path).is_absolute() for part in parts_of(Config(block)))
