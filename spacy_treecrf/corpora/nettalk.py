"""NETtalk: a phoneme and a stress mark for each letter of 20,008 English words."""

from __future__ import annotations

from pathlib import Path

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import CorpusFile, malformed, quoted, read_lines

FILE = CorpusFile(
    "nettalk/nettalk.data", "bf5628ee4368e5348e22189a9e2236bf86853363dd5832d07f6d7223b614f8ab"
)
HEADER_LINES = 10
STRESS_MARKS = frozenset("<>012")
WITHOUT_STRESS = "gunpowder"  # the published file lacks the marks of this word


def read_nettalk(path: Path) -> list[LabelledSequence]:
    """All words, with the layers phoneme, stress, and both of them as one label."""
    expected = "word, phonemes, stress and class with tabs between, a mark for each letter"
    sequences = []
    for number, line in enumerate(read_lines(path, "latin-1"), start=1):
        if number <= HEADER_LINES:
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 4 or not fields[0] or len(fields[1]) != len(fields[0]):
            raise malformed(path, number, quoted(line), expected)
        word, phonemes, stress, _ = fields
        layers = {"phoneme": list(phonemes)}
        if len(stress) == len(word) and set(stress) <= STRESS_MARKS:
            layers["stress"] = list(stress)
            layers["phoneme_stress"] = [p + s for p, s in zip(phonemes, stress, strict=True)]
        elif word != WITHOUT_STRESS:
            raise malformed(path, number, quoted(line), expected)
        sequences.append(LabelledSequence(list(word), layers, key=word))
    if not sequences:
        raise ValueError(
            f"treecrf: {path} has no rows after its {HEADER_LINES} lines of header; "
            f"expected {expected}"
        )
    return sequences


def with_all_layers(sequences: list[LabelledSequence]) -> list[LabelledSequence]:
    """The sequences without the one word that has no stress."""
    return [sequence for sequence in sequences if "stress" in sequence.labels]
