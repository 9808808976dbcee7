"""Attributes that a token has beside its text, mostly set by other pipes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.features.batch import ATTR_IDS, Batch
from spacy_treecrf.features.source import Reading, Source, Window

TEXT_ATTRS = (
    "TAG",
    "POS",
    "DEP",
    "LEMMA",
    "MORPH",
    "NORM",
    "ENT_TYPE",
    "ENT_ID",
    "ENT_KB_ID",
)
NUMBER_ATTRS = ("ENT_IOB", "SENT_START", "SPACY")
TOKEN_ATTRS = (*TEXT_ATTRS, *NUMBER_ATTRS)
OF_THE_TOKENIZER = ("NORM", "SPACY")


class TokenAttribute(Source):
    """One attribute of tokens, such as TAG; where it is not set, it is absent."""

    def __init__(self, attr: str, window: Window) -> None:
        self.name = self.column = attr.lower()
        self.window = window
        self.attr = ATTR_IDS[attr]
        self.attrs = (self.attr,)
        self.is_text = attr in TEXT_ATTRS
        self.reads_annotations = attr not in OF_THE_TOKENIZER

    def window_of(self, column: str) -> Window | None:
        return self.window if column == self.column else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        return batch.array(self.attr)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        keys = batch.array(self.attr)[positions]
        if self.is_text:
            texts = batch.strings(keys)
        else:
            texts = [str(number) if number else "" for number in keys.astype(np.int64).tolist()]
        return Reading({self.column: [text or None for text in texts]})
