"""Arrays of Zhou and Troyanskaya (2014): small ones written here, read, refused and trained on."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import Token

from spacy_treecrf.corpora import LabelledSequence, load_corpus, prepare_corpus
from spacy_treecrf.corpora.protein8 import (
    FILE,
    LENGTH,
    N_PUBLISHED,
    RESIDUES,
    STRUCTURES,
    WIDTH,
    published_split,
    read_protein8,
)
from tests.fresh_environment import ROOT

Proteins = npt.NDArray[np.float64]
LENGTHS = (9, 30, 12)


@pytest.fixture(autouse=True)
def without_new_extensions() -> Iterator[None]:
    yield
    for name in ("profile", "terminals", "structure8"):
        if Token.has_extension(name):
            Token.remove_extension(name)


def proteins(lengths: tuple[int, ...] = LENGTHS) -> Proteins:
    """A residue's structure follows from the residue and the first number of its profile."""
    draw = np.random.default_rng(0)
    array = np.zeros((len(lengths), LENGTH, WIDTH))
    array[:, :, [21, 30, 56]] = 1.0
    for protein, n in zip(array, lengths, strict=True):
        residues = draw.integers(0, len(RESIDUES), n)
        profile = draw.random((n, 21))
        structures = 2 * (residues % 4) + (profile[:, 0] > 0.5)
        protein[:n] = 0.0
        protein[np.arange(n), residues] = 1.0
        protein[np.arange(n), 22 + structures] = 1.0
        protein[0, 31] = protein[n - 1, 32] = 1.0
        protein[:n, 35:56] = profile
    return array


def packed(array: npt.NDArray[np.generic]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def write(folder: Path, content: bytes) -> Path:
    path = folder / FILE.path
    path.parent.mkdir()
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">f8"])
@pytest.mark.parametrize("flat", [True, False])
def test_proteins_are_read(
    tmp_path: Path, pack: Callable[[bytes], bytes], dtype: str, flat: bool
) -> None:
    array = proteins()
    stored = (array.reshape(len(array), -1) if flat else array).astype(dtype)
    sequences = read_protein8(write(tmp_path, pack(packed(stored))))
    assert [len(sequence.words) for sequence in sequences] == list(LENGTHS)
    for sequence, rows in zip(sequences, array, strict=True):
        n = len(sequence.words)
        residues = [RESIDUES[i] for i in rows[:n, :21].argmax(axis=1)]
        structures = [STRUCTURES[i] for i in rows[:n, 22:30].argmax(axis=1)]
        assert (sequence.words, sequence.labels["structure8"]) == (residues, structures)
        assert np.allclose(sequence.features["profile"], rows[:n, 35:])
        assert sequence.features["terminals"][0] == [1.0, 0.0]
        assert sequence.features["terminals"][-1] == [0.0, 1.0]


def changed(where: tuple[int, ...], value: float) -> Callable[[], bytes]:
    def content() -> bytes:
        array = proteins()
        array[where] = value
        return packed(array)

    return content


def fully_padded() -> bytes:
    array = proteins()
    array[1] = array[1, -1]
    return packed(array)


def padding_first() -> bytes:
    array = proteins()
    array[1, 0] = array[1, -1]
    return packed(array)


DAMAGED: list[tuple[Callable[[], bytes], str]] = [
    (changed((1, 3, 40), np.nan), "protein 1, position 3: a value that is not finite"),
    (changed((0, 2, 36), np.inf), "protein 0, position 2: a value that is not finite"),
    (changed((2, 5, slice(0, 22)), 0.0), "protein 2, position 5: the 22 columns of the residue"),
    (changed((2, 5, slice(22, 24)), 1.0), "protein 2, position 5: the 9 columns of the structure"),
    (changed((0, 600, 21), 0.5), "protein 0, position 600: the 22 columns of the residue"),
    (padding_first, "protein 1: padding before a residue"),
    (fully_padded, "protein 1: no residues"),
    (lambda: packed(proteins())[:-1], "the file ends within protein 2 of 3"),
    (lambda: packed(proteins()) + b"x", "more data behind the 3 proteins"),
    (lambda: gzip.compress(packed(proteins()))[:-40], "damaged gzip data"),
    (lambda: b"\x1f\x8bnonsense and more of it", "damaged gzip data"),
    (lambda: b"PDB", "no array of numpy"),
    (lambda: b"", "no array of numpy"),
    (lambda: packed(proteins())[:40], "no array of numpy"),
    (lambda: packed(proteins()[:, :, :56]), r"the shape \(3, 700, 56\)"),
    (lambda: packed(proteins()[0]), r"the shape \(700, 57\)"),
    (lambda: packed(np.asfortranarray(proteins())), "in Fortran's order"),
    (lambda: packed(proteins().astype(np.int64)), "values of type int64"),
    (lambda: packed(np.array([{"a": 1}], dtype=object)), "values of type object"),
    (lambda: packed(proteins()[:0]), "holds no proteins"),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_damaged_files_are_refused(
    tmp_path: Path, content: Callable[[], bytes], message: str
) -> None:
    path = write(tmp_path, content())
    with pytest.raises(ValueError, match=rf"^treecrf: .*{message}.*expected"):
        read_protein8(path)


def test_a_residue_needs_a_structure(tmp_path: Path) -> None:
    array = proteins()
    array[0, 4, 22:31] = array[0, -1, 22:31]
    with pytest.raises(ValueError, match=r"position 4: only one of residue and structure"):
        read_protein8(write(tmp_path, packed(array)))


def test_published_split_leaves_out_five_proteins() -> None:
    sequences = [
        LabelledSequence(["A"], {"structure8": ["L"]}, key=str(i)) for i in range(N_PUBLISHED)
    ]
    parts = {
        part: [int(sequence.key) for sequence in some]
        for part, some in published_split(sequences).items()
    }
    assert {part: len(keys) for part, keys in parts.items()} == {
        "train": 5600,
        "test": 272,
        "dev": 256,
    }
    assert (parts["train"][-1], parts["test"][0], parts["dev"][0]) == (5599, 5605, 5877)
    with pytest.raises(ValueError, match=r"^treecrf: .*6,133 proteins, and these are 6,132"):
        published_split(sequences[1:])


def test_the_registry_finds_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^treecrf: protein8/cullpdb.*princeton"):
        load_corpus("protein8", folder=tmp_path)
    write(tmp_path, gzip.compress(packed(proteins((5,) * 30)), 1))
    splits = load_corpus("protein8", folder=tmp_path, split="hash")
    assert sum(map(len, splits.values())) == 30
    with pytest.raises(ValueError, match="split 'published'"):
        load_corpus("protein8", folder=tmp_path)


def test_the_config_learns_from_such_a_file(tmp_path: Path) -> None:
    write(tmp_path, packed(proteins((20,) * 60).astype(np.float32)))
    prepare_corpus("protein8", tmp_path / "corpus", split="hash", folder=tmp_path)
    overrides = {f"paths.{p}": str(tmp_path / "corpus" / f"{p}.spacy") for p in ("train", "dev")}
    config = ROOT / "configs" / "protein8.cfg"
    train(config, tmp_path / "model", overrides=overrides | {"training.max_steps": 2})
    nlp = spacy.load(tmp_path / "model" / "model-best")
    # labels are balanced, so chance is an eighth; the rule needs residue and profile
    assert nlp.meta["performance"]["ext_structure8_acc"] > 0.6
