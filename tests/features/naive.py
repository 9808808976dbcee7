"""Features of docs token by token in plain Python: the twin of the arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import spacy
from spacy.tokens import Doc, Token

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import ABSENT

NLP = spacy.blank("en")
EDGE = "<edge>"


def make_docs(*texts: str | list[str]) -> list[Doc]:
    return [Doc(NLP.vocab, words=t.split() if isinstance(t, str) else t) for t in texts]


def offsets_of(docs: list[Doc]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *map(len, docs)], dtype=np.int64)


def base_columns(
    attrs: dict[str, list[int]],
    prefixes: list[int],
    suffixes: list[int],
    affix_window: list[int],
    patterns: dict[str, str],
) -> list[tuple[str, list[int], Callable[[Token], Any]]]:
    """Columns of words in the order of the extractor: name, window, value of a token."""

    def of_attr(attr: str) -> Callable[[Token], Any]:
        if attr.startswith(("IS_", "LIKE_")):
            return lambda token: "True" if getattr(token, attr.lower()) else None
        return lambda token: getattr(token, attr.lower() + "_") or None

    def prefix(n: int) -> Callable[[Token], Any]:
        return lambda token: token.lower_[:n] if len(token.lower_) >= n else None

    def suffix(n: int) -> Callable[[Token], Any]:
        return lambda token: token.lower_[-n:] if len(token.lower_) >= n else None

    def flag(pattern: str) -> Callable[[Token], Any]:
        return lambda token: "True" if re.search(pattern, token.text) else None

    upstream = [attr for attr in attrs if attr in ("TAG", "POS", "NORM")]
    columns = [(a.lower(), attrs[a], of_attr(a)) for a in attrs if a not in upstream]
    columns += [(f"prefix{n}", affix_window, prefix(n)) for n in prefixes]
    columns += [(f"suffix{n}", affix_window, suffix(n)) for n in suffixes]
    columns += [(f"pattern.{name}", [0], flag(p)) for name, p in patterns.items()]
    return columns + [(a.lower(), attrs[a], of_attr(a)) for a in upstream]


def naive_names(
    docs: list[Doc],
    offsets: npt.NDArray[np.int64],
    columns: list[tuple[str, list[int], Callable[[Token], Any]]],
) -> list[set[str]]:
    """The names of the features of each token."""
    tokens = [token for doc in docs for token in doc]
    marks: dict[int, str] = {}
    for name, window, _ in columns:
        for offset in window:
            marks.setdefault(offset, name)
    names: list[set[str]] = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for t in range(start, end):
            found = set()
            for name, window, value_of in columns:
                for offset in window:
                    if start <= t + offset < end:
                        value = value_of(tokens[t + offset])
                    else:
                        value = EDGE if marks[offset] == name else None
                    if value is not None:
                        found.add(f"{name}[{offset}]={value}")
            names.append(found)
    return names


def decoded(feature_ids: npt.NDArray[np.int32], columns: Columns) -> list[set[str]]:
    """The names of the features in each row of feature_ids; every one must be in its slot."""
    for row in feature_ids.tolist():
        for slot, feature in enumerate(row):
            if feature != ABSENT:
                assert columns.slot_range[feature].tolist() == [slot, slot + 1]
    return [{columns.feature_names[c] for c in row if c != ABSENT} for row in feature_ids.tolist()]


def numbers(extractor: Any, docs: list[Doc], **settings: Any) -> tuple[Columns, Any, Any]:
    """Fit on docs, and encode them, each doc a sequence."""
    offsets = offsets_of(docs)
    columns = extractor.fit(docs, offsets, **{"min_count": 1, "max_bins": 255, **settings})
    return columns, *extractor.encode(docs, offsets, columns, training=True)
