"""The real corpora, where they are: the counts that their pages state, and splits of the papers."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest

from spacy_treecrf.corpora import CORPORA, LabelledSequence, Splits, load_corpus
from spacy_treecrf.corpora.aligner import fit_aligner
from spacy_treecrf.corpora.cmudict import cmudict_file, read_cmudict, read_pronunciations
from spacy_treecrf.corpora.labelled_sequence import n_tokens
from spacy_treecrf.corpora.nettalk import read_nettalk
from tests.corpora.phonemes import phonemes_of
from tests.corpora.places import folder_with, skip_without_cmudict


def sizes(splits: Splits) -> tuple[int, ...]:
    return tuple(len(splits[part]) for part in ("train", "dev", "test"))


def assert_disjoint(splits: Splits) -> None:
    found = [{sequence.key for sequence in sequences} for sequences in splits.values()]
    for one, other in combinations(found, 2):
        assert not one & other


def labels(sequences: list[LabelledSequence], layer: str) -> set[str]:
    return {label for sequence in sequences for label in sequence.labels.get(layer, [])}


def test_nettalk() -> None:
    folder = folder_with("nettalk")
    sequences = read_nettalk(folder / CORPORA["nettalk"].files[0].path)
    assert len(sequences) == 20008
    assert sum(n - 1 for n in Counter(sequence.key for sequence in sequences).values()) == 206
    counts = [len(labels(sequences, layer)) for layer in CORPORA["nettalk"].tasks]
    assert counts == [51, 5, 163]
    small = load_corpus("nettalk", folder=folder)
    assert sizes(small) == (1000, 1000, 1000)
    assert_disjoint(small)
    wide = load_corpus("nettalk", split="wide", folder=folder)
    assert sizes(wide) == (1000, 1000, 18007)
    assert_disjoint(wide)
    assert [wide[part] for part in ("train", "dev")] == [small[part] for part in ("train", "dev")]
    large = load_corpus("nettalk", split="large", folder=folder, dev_share=0)
    assert sizes(large) == (19000, 0, 1007)
    assert_disjoint(large)


def test_conll2000() -> None:
    splits = load_corpus("conll2000", folder=folder_with("conll2000"), dev_share=0)
    assert sizes(splits) == (8936, 0, 2012)
    assert n_tokens(splits["train"]) == 211727
    assert n_tokens(splits["test"]) == 47377


def test_conll2003() -> None:
    folder = folder_with("conll2003")
    splits = load_corpus("conll2003", folder=folder, dev_share=0)
    assert sizes(splits) == (14041, 0, 3250)
    assert len({sequence.document for sequence in splits["train"]}) == 946
    starts = Counter(
        label for sequence in splits["train"] for label in sequence.labels["ner"] if label[0] == "B"
    )
    assert sum(starts.values()) == 23499
    held = load_corpus("conll2003", folder=folder)
    assert sum(sizes(held)[:2]) == 14041
    assert_disjoint(held)


@pytest.mark.parametrize(
    ("name", "sentences", "documents", "names"),
    [
        ("conll2002es", (8323, 0, 1915), (708, 150), 18797),
        ("conll2002nl", (15806, 0, 2895), (287, 74), 13344),
    ],
)
def test_conll2002(
    name: str, sentences: tuple[int, ...], documents: tuple[int, int], names: int
) -> None:
    splits = load_corpus(name, folder=folder_with(name), dev_share=0)
    assert sizes(splits) == sentences
    found = [len({sequence.document for sequence in splits[p]}) for p in ("train", "test")]
    assert tuple(found) == documents
    begins = [label for s in splits["train"] for label in s.labels["ner"] if label[0] == "B"]
    assert len(begins) == names


@pytest.mark.slow
def test_moby() -> None:
    folder = folder_with("moby")
    small = load_corpus("moby", folder=folder)
    assert sizes(small) == (1951, 908, 908)
    large = load_corpus("moby", split="large", folder=folder)
    assert sizes(large) == (120000, 4000, 138735 - 124000)
    assert_disjoint(small)
    assert_disjoint(large)


def test_protein() -> None:
    splits = load_corpus("protein", folder=folder_with("protein"), dev_share=0)
    assert sizes(splits) == (111, 0, 17)
    assert (n_tokens(splits["train"]), n_tokens(splits["test"])) == (18105, 3520)


def test_ocr() -> None:
    folder = folder_with("ocr")
    folds = [load_corpus("ocr", split=f"fold{i}", folder=folder, dev_share=0) for i in (0, 9)]
    every = folds[0]["train"] + folds[0]["test"]
    assert (len(every), n_tokens(every)) == (6877, 52152)
    assert len({"".join(sequence.labels["letter"]) for sequence in every}) == 55
    assert [n_tokens(splits["test"]) for splits in folds] == [4617, 5142]
    assert_disjoint(folds[0])


@pytest.mark.slow
def test_whole_cmudict_is_aligned() -> None:
    skip_without_cmudict()
    sequences = read_cmudict(cmudict_file(), sample=1.0)
    assert len(sequences) > 0.99 * 117493


@pytest.mark.slow
def test_cmudict() -> None:
    """A tenth of the default sample, for speed."""
    skip_without_cmudict()
    path = cmudict_file()
    every = read_pronunciations(path)
    assert len(every) == 117493
    messages: list[str] = []
    sequences = read_cmudict(path, sample=0.02, report=messages.append)
    assert "2367 of 117493 words" in messages[0]
    assert len(sequences) > 0.97 * 2367
    for sequence in sequences:
        assert phonemes_of(sequence.labels["phoneme"]) == every["".join(sequence.words)]
    assert len(labels(sequences, "phoneme")) < 130
    pairs = [(sequence.key, every[sequence.key]) for sequence in sequences]
    for likelihoods in fit_aligner(pairs).likelihoods:
        assert all(after >= before for before, after in pairwise(likelihoods))
