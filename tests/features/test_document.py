"""Document-level columns against a naive twin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.features.document import CASES, case_of
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import decoded, make_docs, offsets_of

KINDS = ["case", "repeated", "neighbours", "heading"]


def case_name(text: str) -> str:
    return CASES[case_of(text)]


@pytest.mark.parametrize(
    ("text", "case"),
    [("a", "lower"), ("A", "title"), ("AB", "upper"), ("Ab", "title"), ("aB", "mixed"),
     ("McX", "mixed"), ("1", ""), ("", ""), (".", ""), ("U.S.", "upper"), ("日本", "")],
)  # fmt: skip
def test_case(text: str, case: str) -> None:
    assert case_name(text) == case


def naive(docs: list[list[str]], sequences: list[list[int]]) -> list[set[str]]:
    found = []
    for tokens, starts in zip(docs, sequences, strict=True):
        bounds = [*starts, len(tokens)]
        start_of = [max(s for s in starts if s <= t) for t in range(len(tokens))]
        end_of = [min(b for b in bounds if b > t) for t in range(len(tokens))]

        def tells(t: int) -> bool:
            case = case_name(tokens[t])  # noqa: B023
            return bool(case) and not (case == "title" and t == start_of[t])  # noqa: B023

        for t, token in enumerate(tokens):
            same = [u for u in range(len(tokens)) if u != t and tokens[u].lower() == token.lower()]
            same = [u for u in same if tells(u)]
            high = [u for u in same if case_name(tokens[u]) != "lower"]
            names = set()
            cases = [c for c in CASES if c in {case_name(tokens[u]) for u in same}]
            if cases:
                names.add("case=" + "+".join(cases))
            if high:
                names.add(f"repeated={len(high)}" if len(high) < 3 else "repeated=3+")
                first = high[0]
                if first > start_of[first]:
                    names.add("before=" + tokens[first - 1].lower())
                if first + 1 < end_of[first]:
                    names.add("after=" + tokens[first + 1].lower())
            line = [case_name(word) for word in tokens[start_of[t] : end_of[t]]]
            if "lower" in line or "mixed" in line:
                names.add("heading=lower")
            elif line.count("upper") and line.count("upper") >= line.count("title"):
                names.add("heading=upper")
            elif "title" in line:
                names.add("heading=title")
            found.append(names)
    return found


def naive_runs(docs: list[list[str]], sequences: list[list[int]]) -> list[set[str]]:
    found = []
    for tokens, starts in zip(docs, sequences, strict=True):
        bounds = [*starts, len(tokens)]
        runs: list[tuple[int, int]] = []
        for start, end in itertools.pairwise(bounds):
            cases = [case_name(word) for word in tokens[start:end]]
            if set(cases) <= {"upper", "title", ""} and cases.count("upper") >= max(
                1, cases.count("title")
            ):
                continue  # a heading in capitals
            groups = itertools.groupby(range(start, end), lambda t: cases[t - start])  # noqa: B023
            capital = [t for case, ts in groups if case not in ("", "lower") for t in ts]
            while capital:
                first = last = capital.pop(0)
                while capital and capital[0] == last + 1:
                    last = capital.pop(0)
                if last + 1 - first <= 6:
                    runs.append((first, last + 1))
        for t, token in enumerate(tokens):
            names = {f"opening={tokens[0].lower()}"}
            found.append(names)
            if case_name(token) in ("", "lower"):
                continue
            places = [
                (min(end - first, 4), -u, first, end)
                for first, end in runs
                for u in range(first, end)
                if tokens[u].lower() == token.lower() and not first <= t < end
            ]
            if places:
                _, at, first, end = max(places)
                at = -at
                names |= {
                    f"run_first={tokens[first].lower()}",
                    f"run_last={tokens[end - 1].lower()}",
                    f"run_before={tokens[at - 1].lower() if at > first else '<edge>'}",
                    f"run_after={tokens[at + 1].lower() if at + 1 < end else '<edge>'}",
                    f"run_place={at - first}/{end - first}",
                }
    return found


WORDS = st.sampled_from(["anna", "Anna", "ANNA", "aNNa", "bonn", "Bonn", "12", ".", "A"])


def encoded_names(data: Any, words: Any, kinds: list[str]) -> tuple[Any, Any, list[set[str]]]:
    """Drawn docs, the starts of their sequences, and the names of each token's features."""
    texts = data.draw(st.lists(st.lists(words, min_size=1, max_size=10), min_size=1, max_size=3))
    starts = [sorted({0, *data.draw(st.sets(st.integers(0, len(text) - 1)))}) for text in texts]
    docs = make_docs(*texts)
    firsts = offsets_of(docs)
    offsets = [f + s for f, ss in zip(firsts[:-1], starts, strict=True) for s in ss]
    cuts = np.array([*offsets, firsts[-1]], np.int64)
    features = create_token_features({}, [], [], document=kinds)
    columns = features.fit(docs, cuts, min_count=1, max_bins=255)
    feature_ids, _ = features.encode(docs, cuts, columns)
    names = [
        {n.removeprefix("document.").replace("[0]=", "=") for n in row}
        for row in decoded(feature_ids, columns)
    ]
    return texts, starts, names


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_columns_are_those_of_the_naive_twin(data: Any) -> None:
    texts, starts, names = encoded_names(data, WORDS, KINDS)
    assert names == naive(texts, starts)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_runs_are_those_of_the_naive_twin(data: Any) -> None:
    words = st.sampled_from(["Anna", "ANNA", "Bonn", "City", "in", "."])
    texts, starts, names = encoded_names(data, words, ["runs", "opening"])
    assert names == naive_runs(texts, starts)


def test_documents_do_not_know_of_each_other() -> None:
    features = create_token_features({}, [], [], document=["repeated"])
    docs = make_docs("in Bonn", "to Bonn and Bonn")
    cuts = offsets_of(docs)
    columns = features.fit(docs, cuts, min_count=1, max_bins=255)
    feature_ids, _ = features.encode(docs, cuts, columns)
    assert [len(names) for names in decoded(feature_ids, columns)] == [0, 0, 0, 1, 0, 1]
