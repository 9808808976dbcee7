"""Secondary structure of proteins: helix (h), sheet (e) or coil (_) for each residue."""

from __future__ import annotations

from pathlib import Path

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import CorpusFile, malformed, quoted, read_lines

TRAIN = CorpusFile(
    "protein/protein-secondary-structure.train",
    "d30a9151538dc5d82bcea09398cefe0d5d2147972bcf2bade6407fa728c66b32",
)
TEST = CorpusFile(
    "protein/protein-secondary-structure.test",
    "19ef9733125778e6bb6df38963868ddf057318e2641ec11eb2e642f8b1b09d3d",
)
START = "<>"
ENDS = ("end", "<end>")
STRUCTURES = ("h", "e", "_")


def read_protein(path: Path) -> list[LabelledSequence]:
    """Chains of residues: each begins with "<>", and may end with "end" or "<end>"."""
    expected = "a residue and its structure (h, e or _), as in 'G _', or '<>' before a chain"
    chains: list[list[list[str]]] = []
    ended = True  # no residue may come before the next "<>"
    for number, line in enumerate(read_lines(path, "latin-1"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text == START:
            chains.append([])
            ended = False
        elif text in ENDS:
            ended = True
        else:
            fields = text.split()
            residue = len(fields) == 2 and len(fields[0]) == 1 and fields[1] in STRUCTURES
            if ended or not residue:
                raise malformed(path, number, quoted(line), expected)
            chains[-1].append(fields)
    sequences = []
    for chain in filter(None, chains):
        residues = [residue for residue, _ in chain]
        structures = [structure for _, structure in chain]
        sequences.append(
            LabelledSequence(residues, {"structure": structures}, key="".join(residues))
        )
    if not sequences:
        raise ValueError(f"treecrf: {path} has no chains; expected {expected}")
    return sequences
