"""Corpora: files in, labelled sequences out, in splits that never change.

Formats, scripts and the command line may import it; it imports labels alone.
"""

from spacy_treecrf.corpora.docs import tasks_of, to_docs
from spacy_treecrf.corpora.labelled_sequence import PARTS, LabelledSequence, Splits
from spacy_treecrf.corpora.reading import CorpusFile, read_columns
from spacy_treecrf.corpora.registry import (
    CORPORA,
    DEFAULT_CORPUS,
    Corpus,
    find_corpus,
    load_corpus,
)
from spacy_treecrf.corpora.salesman import Salesman
from spacy_treecrf.corpora.synthetic import Synthetic
from spacy_treecrf.corpora.writing import (
    FORMATS,
    Prepared,
    prepare_corpus,
    write_conll,
    write_jsonl,
    write_spacy,
)

Record = LabelledSequence  # its name in 0.1

__all__ = [
    "CORPORA",
    "DEFAULT_CORPUS",
    "FORMATS",
    "PARTS",
    "Corpus",
    "CorpusFile",
    "LabelledSequence",
    "Prepared",
    "Record",
    "Salesman",
    "Splits",
    "Synthetic",
    "find_corpus",
    "load_corpus",
    "prepare_corpus",
    "read_columns",
    "tasks_of",
    "to_docs",
    "write_conll",
    "write_jsonl",
    "write_spacy",
]
