"""Word vectors within a model for column files, in half precision: by word, or floret's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.storage.state_reader import StateReader

if TYPE_CHECKING:
    from spacy.vocab import Vocab

MOST_LETTERS = 100  # of an n-gram


def vectors_of(vocab: Vocab, pipeline: str) -> Any:
    """The vectors of a pipeline, in half precision; nothing else of the pipeline is kept."""
    import spacy

    try:
        found = spacy.load(pipeline, exclude=["treecrf"]).vocab.vectors
    except OSError as error:
        raise ValueError(
            f"treecrf: --features vectors={pipeline}: no pipeline of spaCy is there ({error}); "
            "name a folder or an installed package"
        ) from error
    if not found.size:
        raise ValueError(f"treecrf: --features vectors={pipeline}: the pipeline has no vectors")
    return read_vectors(StateReader(vectors_state(found)), vocab)


def vectors_state(vectors: Any) -> dict[str, Any]:
    """The state of vectors; without any (None), that of an empty table."""
    is_floret = vectors is not None and str(vectors.mode) == "floret"
    entries = [] if vectors is None or is_floret else list(vectors.key2row.items())
    data = np.empty((0, 0)) if vectors is None else vectors.data
    state = {
        "vector_attr": 0 if vectors is None else int(vectors.attr),
        "vector_keys": np.array([key for key, _ in entries], np.uint64),
        "vector_rows": np.array([row for _, row in entries], np.int32),
        # Half precision, in which they are learned from too, as its bits.
        "vector_data": np.asarray(data, np.float16).view(np.uint16),
    }
    if is_floret:  # files of models without it lack the entry
        state["floret"] = {
            "minn": vectors.minn,
            "maxn": vectors.maxn,
            "hash_count": vectors.hash_count,
            "hash_seed": vectors.hash_seed,
            "bow": vectors.bow,
            "eow": vectors.eow,
        }
    return state


def read_vectors(reader: StateReader, vocab: Vocab) -> Any:
    """The vectors of a state; None if it has none."""
    from spacy.vectors import Vectors  # type: ignore[import-not-found]

    bits = reader.array("vector_data", np.uint16, (None, None))
    keys = reader.array("vector_keys", np.uint64, (None,))
    rows = reader.array("vector_rows", np.int32, (len(keys),), 0, len(bits) - 1)
    attr = reader.integer("vector_attr", 0, 2**16)
    data: npt.NDArray[np.float32] = bits.view(np.float16).astype(np.float32)
    if reader.has("floret"):
        settings = _floret_settings(reader.nested("floret"))
        return Vectors(strings=vocab.strings, data=data, attr=attr, mode="floret", **settings)
    if not data.size:
        return None
    table = Vectors(strings=vocab.strings, data=data, attr=attr)
    for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
        table.add(key, row=row)
    return table


def _floret_settings(reader: StateReader) -> dict[str, Any]:
    least = reader.integer("minn", 1, MOST_LETTERS)
    settings = {
        "minn": least,
        "maxn": reader.integer("maxn", least, MOST_LETTERS),
        "hash_count": reader.integer("hash_count", 1, 4),
        "hash_seed": reader.integer("hash_seed", 0, 2**32 - 1),
        "bow": reader.string("bow"),
        "eow": reader.string("eow"),
    }
    reader.done()
    return settings
