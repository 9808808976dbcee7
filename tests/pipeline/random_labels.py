"""Valid BILUO sequences with strange names, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from spacy_treecrf.labels.biluo import write_span

STRANGE_NAMES = ["ORG", "B-A", "-", "a:b", "x y", "#", "new\nline", "🙂", "O", "é", "I-", "|", " "]


@st.composite
def biluo_sequences(draw: st.DrawFn, min_size: int = 0, max_size: int = 20) -> list[str]:
    length = draw(st.integers(min_size, max_size))
    labels: list[str | None] = ["O"] * length
    at = 0
    while at < length:
        size = draw(st.integers(0, min(4, length - at)))
        if size:
            write_span(labels, at, at + size, draw(st.sampled_from(STRANGE_NAMES)))
        at += max(size, 1)
    return [label or "O" for label in labels]
