"""The phonemes that labels of letters stand for, to check alignments."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.corpora.aligner import JOINT, SILENT


def phonemes_of(labels: Iterable[str]) -> list[str]:
    """The phonemes that the labels of a word's letters stand for."""
    return [p for label in labels if label != SILENT for p in label.split(JOINT)]
