"""`.spacy` files as parts: their dicts and labels, what is refused, and what is learned."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import fsspec
import pytest
from distributed import Client, LocalCluster
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_treecrf import BoostedCRF
from spacy_treecrf.columnar.files import parse_column_file
from spacy_treecrf.columnar.template import Template
from spacy_treecrf.dask import DaskBoostedCRF, doc_features, read_docs
from spacy_treecrf.dask.parts import column_data, list_parts
from tests.dask.cluster_data import stored
from tests.test_package import loaded_after

VOCAB = Vocab()
DOG = Doc(
    VOCAB,
    words=["Ann", "Lee", "sleeps", ".", "In", "New", "York", "City"],
    tags=["N", "N", "V", ".", "P", "N", "N", "N"],
    sent_starts=[True, False, False, False, True, False, False, False],
    ents=["B-PER", "I-PER", "O", "O", "O", "B-LOC", "I-LOC", "I-LOC"],
)


def write(path: Path, *docs: Doc) -> str:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return str(path)


def made_docs(n: int, seed: int = 0) -> list[Doc]:
    """Docs of a few sentences each, whose entities depend on their words."""
    rng, docs = random.Random(seed), []
    for _ in range(n):
        words, starts, ents = [], [], []
        for _ in range(rng.randint(1, 4)):
            for t in range(rng.randint(2, 12)):
                number = rng.randint(0, 200)
                words.append(f"{'W' if number % 3 else 'w'}{number}")
                starts.append(t == 0)
                ents.append("O" if number % 4 else f"B-{'XY'[number % 8 // 4]}")
        docs.append(Doc(VOCAB, words=words, sent_starts=starts, ents=ents))
    return docs


def test_docs_become_what_a_column_file_of_their_sentences_becomes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.spacy", DOG)
    rows = b"Ann B-PER\nLee L-PER\nsleeps O\n. O\n\nIn O\nNew B-LOC\nYork I-LOC\nCity L-LOC\n"
    expected = column_data(Template(("word", "label")), parse_column_file(rows, "a"))
    assert read_docs(path, "ents") == expected
    assert doc_features([DOG, DOG]) == [*expected[0], *expected[0]]


def test_docs_are_read_from_wherever_fsspec_reads() -> None:
    for name in ("a", "b"):
        with fsspec.open(f"memory://docs/{name}.spacy", "wb") as file:
            file.write(DocBin(docs=[DOG]).to_bytes())
    expected = read_docs("memory://docs/a.spacy", "ents")
    assert expected[0] == doc_features([DOG])
    parts = list_parts("memory://docs/*.spacy", "parts", task="ents")
    assert [part.read(None) for part in parts] == [expected, expected]


def test_a_doc_without_boundaries_is_one_sequence_and_an_empty_one_is_none(tmp_path: Path) -> None:
    plain = Doc(VOCAB, words=["a", "b", "c"], tags=["X", "", "Y"])
    X, y = read_docs(write(tmp_path / "a.spacy", plain, Doc(VOCAB), plain), "tag")
    assert y == [["X", None, "Y"], ["X", None, "Y"]]
    assert [[item["1.word[0]"] for item in items] for items in X] == [["a", "b", "c"]] * 2
    assert read_docs(write(tmp_path / "no.spacy"), "tag") == ([], [])
    assert read_docs(tmp_path / "a.spacy")[1] == [[None] * 3, [None] * 3]


def test_a_span_across_sentences_counts_as_not_annotated(tmp_path: Path) -> None:
    doc = DOG.copy()
    doc.spans["sc"] = [Span(doc, 0, 1, "A"), Span(doc, 2, 6, "B"), Span(doc, 6, 8, "A")]
    _, y = read_docs(write(tmp_path / "a.spacy", doc), "spans")
    assert y == [["U-A", "O", None, None], [None, None, "B-A", "L-A"]]


def test_a_template_says_what_words_become(tmp_path: Path) -> None:
    path = write(tmp_path / "a.spacy", DOG)
    near = Template(("word", "label"), window=0)
    X, _ = read_docs(path, "ents", template=near)
    assert doc_features([DOG], template=near) == X
    assert "1.lower[1]" not in X[0][0]
    (part,) = list_parts(path, "parts", near, "ents")
    assert part.read(None)[0] == X
    with pytest.raises(ValueError, match="the template has the columns word, value, label; docs"):
        read_docs(path, "ents", template=Template(("word", "value", "label")))


def test_parts_of_docs_that_cannot_be_learned_are_named(tmp_path: Path) -> None:
    good = write(tmp_path / "good.spacy", DOG)
    bare = write(tmp_path / "bare.spacy", Doc(VOCAB, words=["a", "b"]))
    damaged = tmp_path / "damaged.spacy"
    damaged.write_bytes(b"no docs")
    weighted = DOG.copy()
    weighted.user_data[("._.", "treecrf_weight", None, None)] = 0.5

    def read(path: str | Path, task: str) -> Any:
        return [part.read(None) for part in list_parts([good, path], "parts", task=task)]

    assert read(write(tmp_path / "none.spacy"), "ents")[1] == ([], [])
    with pytest.raises(ValueError, match=r"part \S*bare.spacy: no token has annotation for .*ents"):
        read(bare, "ents")
    with pytest.raises(ValueError, match=r"part \S*damaged.spacy: cannot read .* as a .spacy file"):
        read(damaged, "ents")
    with pytest.raises(ValueError, match=r"part \S*good.spacy: no token has .*'spans:other'"):
        read(bare, "spans:other")
    with pytest.raises(ValueError, match=r"part \S*heavy.spacy: doc 1 of .* has weights"):
        read(write(tmp_path / "heavy.spacy", weighted), "ents")
    with pytest.raises(ValueError, match=r"^treecrf: cannot read \S*missing.spacy"):
        read_docs(tmp_path / "missing.spacy", "ents")


def test_tasks_and_files_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    docs = write(tmp_path / "a.spacy", DOG)
    (tmp_path / "a.conll").write_text("a\tB\n", encoding="utf8")
    columns = str(tmp_path / "a.conll")
    crf = DaskBoostedCRF(rounds=1)
    with pytest.raises(ValueError, match=r"a.spacy is a .spacy file, and no task says"):
        crf.fit(docs)
    with pytest.raises(ValueError, match="unknown task 'entities'"):
        crf.fit(docs, task="entities")
    with pytest.raises(ValueError, match=r"a.conll is no .spacy file; a task says"):
        crf.fit([docs, columns], task="ents")
    with pytest.raises(ValueError, match=r"a.conll is no .spacy file, and other parts are"):
        crf.fit([docs, columns])
    with pytest.raises(ValueError, match="task is 'ents', and parts names no files"):
        crf.fit([([], [])], task="ents")


def test_other_parts_load_no_spacy() -> None:
    code = "import spacy_treecrf.dask.estimator, spacy_treecrf.dask.worker_state"
    assert "spacy" not in loaded_after(code)


@pytest.mark.slow
def test_the_model_of_files_on_a_cluster_is_the_local_one(tmp_path: Path) -> None:
    docs, dev = made_docs(500), made_docs(60, seed=1)
    for number, first in enumerate(range(0, 500, 125)):
        write(tmp_path / f"part{number}.spacy", *docs[first : first + 125])
    write(tmp_path / "part9.spacy")
    data = read_docs(write(tmp_path / "all.spacy", *docs), "ents")
    held_out = write(tmp_path / "dev.spacy", *dev)
    settings: dict[str, Any] = {"rounds": 5, "linear_rounds": 2, "leaves": 6}
    settings["constraints"] = "biluo"
    local = BoostedCRF(**settings).fit(*data, *read_docs(held_out, "ents"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        crf = DaskBoostedCRF(client, **settings)
        crf.fit(f"file://{tmp_path}/part*.spacy", held_out, task="ents")
    assert stored(crf.to_local()) == stored(local)
    assert all(traffic.worker_bytes for traffic in crf.traffic_[2:]), "one worker had all rows"
    assert crf.n_sequences_ == len(data[0])
    assert crf.to_local().predict(doc_features(dev)) == local.predict(read_docs(held_out)[0])
