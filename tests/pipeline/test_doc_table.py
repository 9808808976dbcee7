"""Values of docs, which the table does not keep alive."""

from __future__ import annotations

import spacy
from spacy.tokens import Doc

from spacy_treecrf.pipeline.doc_table import FEW, DocTable

VOCAB = spacy.blank("en").vocab


def new_docs(n: int) -> list[Doc]:
    return [Doc(VOCAB, words=["a"]) for _ in range(n)]


def test_a_doc_has_its_value_and_others_have_none() -> None:
    table: DocTable[int] = DocTable()
    docs = new_docs(3 * FEW)
    for i, doc in enumerate(docs):
        table[doc] = i
    table[docs[0]] = -1
    assert [table.get(doc) for doc in docs] == [-1, *range(1, 3 * FEW)]
    assert table.get(new_docs(1)[0]) is None, "though its words are the same"
    table.clear()
    assert [table.get(doc) for doc in docs] == [None] * 3 * FEW


def test_docs_that_are_gone_are_found_by_no_other_and_dropped() -> None:
    table: DocTable[str] = DocTable()
    kept = new_docs(5)
    for doc in kept:
        table[doc] = "kept"
    for _ in range(20 * FEW):
        (doc,) = new_docs(1)  # gets the memory of the one before
        assert table.get(doc) is None
        table[doc] = "gone"
        del doc
    assert len(table) <= FEW + 1
    assert [table.get(doc) for doc in kept] == ["kept"] * 5
