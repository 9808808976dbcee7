"""scripts/reproduce/protein.py: inputs, and folds that keep related chains together."""

from __future__ import annotations

from scripts.reproduce.protein import EDGE, RELATED, families, folds, windows
from spacy_treecrf.corpora import LabelledSequence


def chain(residues: str) -> LabelledSequence:
    return LabelledSequence(list(residues), {"structure": ["_"] * len(residues)}, key=residues)


def test_windows_show_residues_and_their_groups() -> None:
    items = windows(["K", "G", "X"])
    assert items[0]["residue[0]"] == "K"
    assert items[1]["kind[-1]"] == "KR"
    assert items[0]["prefers[1]"] == "GNPSD"
    assert items[0]["size[-1]"] == EDGE
    assert "kind[0]" not in items[1]  # glycine is like no other
    assert items[2]["residue[0]"] == "X"
    assert "size[0]" not in items[2]


def test_chains_that_share_a_stretch_are_related_also_through_others() -> None:
    shared, other = "ABCDEF", "UVWXYZ"
    assert len(shared) == RELATED
    chains = [
        chain("L" + shared),
        chain("GHIJKLM"),
        chain(other + "Q"),
        chain(shared + "P" + other),
        chain("ABCDEGHIJ"),
    ]
    first, second, third, fourth, fifth = families(chains)
    assert first == third == fourth
    assert len({first, second, fifth}) == 3
    where = folds(chains, 2)
    assert where[0] == where[2] == where[3] != where[1]
