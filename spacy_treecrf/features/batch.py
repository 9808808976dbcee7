"""The docs of one batch as one run of tokens, cut into sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import gt
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.attrs import IDS  # type: ignore[import-not-found]
from spacy.tokens import Doc
from spacy.vocab import Vocab

ATTR_IDS: dict[str, int] = IDS
LOWER, NORM, ORTH = ATTR_IDS["LOWER"], ATTR_IDS["NORM"], ATTR_IDS["ORTH"]


class Batch:
    """The tokens of docs, one behind the other, and their attributes as arrays.

    docs: Docs that share a vocab.
    offsets: Sequence s is tokens offsets[s]:offsets[s+1]; docs begin and end with a sequence.
    attrs: The ids, as spaCy has them, of the attributes that `array` can be asked for.
    training: Whether the docs are training data, whose annotation gazetteers were learned from.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        attrs: Sequence[int] = (),
        training: bool = False,
    ) -> None:
        self.docs = docs
        self.training = training
        ends = [0, len(docs[0])] if len(docs) == 1 else [*accumulate(map(len, docs), initial=0)]
        self.doc_offsets = np.array(ends, np.int64)
        self.n_tokens = ends[-1]
        self.offsets = _checked_offsets(offsets, self.n_tokens)
        self.few = False  # whether all sources are asked at once
        self.memo: dict[Any, Any] = {}  # results that several sources share
        if len(docs) > 1 and any(doc.vocab is not docs[0].vocab for doc in docs):
            raise ValueError(
                "treecrf: the docs of a batch have different vocabs; make them with one pipeline"
            )
        self._arrays = _arrays(docs, list(attrs))

    @property
    def vocab(self) -> Vocab:
        return self.docs[0].vocab

    def array(self, attr: int) -> npt.NDArray[np.uint64]:
        """The values of an attribute for all tokens. shape: (n_tokens,)"""
        return self._arrays[attr]

    def strings(self, keys: npt.NDArray[np.uint64]) -> list[str]:
        """The strings that belong to hashes."""
        strings = self.vocab.strings
        return [strings[key] for key in keys.tolist()]

    def doc_of_sequence(self) -> npt.NDArray[np.int64]:
        """The index of the doc that holds each sequence. shape: (n_sequences,)"""
        return np.searchsorted(self.doc_offsets, self.offsets[:-1], side="right") - 1

    def sequence_ends(self) -> npt.NDArray[np.int64]:
        """The place where the sequence of each token ends. shape: (n_tokens,)"""
        return np.repeat(self.offsets[1:], np.diff(self.offsets))


def _arrays(docs: Sequence[Doc], attrs: list[int | str]) -> dict[Any, npt.NDArray[np.uint64]]:
    if not docs or not attrs:
        return {attr: np.empty(0, np.uint64) for attr in attrs}
    # One C call for each doc; a single attribute comes back as a vector.
    tables = [doc.to_array(attrs) for doc in docs]
    table: npt.NDArray[Any] = tables[0] if len(docs) == 1 else np.concatenate(tables)
    if len(attrs) == 1:
        return {attrs[0]: table}
    table = table.reshape(-1, len(attrs))
    return {attr: np.ascontiguousarray(table[:, i]) for i, attr in enumerate(attrs)}


def _checked_offsets(offsets: npt.NDArray[np.int64], n_tokens: int) -> npt.NDArray[np.int64]:
    offsets = np.ascontiguousarray(offsets, np.int64)
    # A list: docs of one sentence are common, and each question about an array takes longer.
    listed = offsets.tolist() if offsets.ndim == 1 else []
    if listed == [0, n_tokens]:
        return offsets
    ends = listed[:1] + listed[-1:]
    if ends != [0, n_tokens] or any(map(gt, listed, listed[1:])):
        raise ValueError(
            f"treecrf: offsets of sequences must rise from 0 to the {n_tokens} tokens of the docs"
        )
    return offsets
