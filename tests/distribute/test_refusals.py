"""Docs that a cluster cannot learn from as `spacy train` does are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from thinc.api import Config

pytest.importorskip("distributed")

from spacy_treecrf.configs.ready_configs import ready_config
from spacy_treecrf.distribute.doc_state import DocState
from spacy_treecrf.distribute.plan import DocPart, plan_of
from spacy_treecrf.pipeline.gold.soft_gold import store_lattice
from spacy_treecrf.pipeline.gold.weights import register_weights
from tests.distribute.doc_data import make_docs


def weigh_doc(doc: Doc) -> None:
    doc._.treecrf_weight = 0.5


def weigh_span(doc: Doc) -> None:
    doc[0:1]._.treecrf_weight = 0.5


def weigh_token(doc: Doc) -> None:
    doc[0]._.treecrf_weight = 0.0


def teach(doc: Doc) -> None:
    store_lattice(doc, ["O"], np.ones((len(doc), 1)), np.ones((len(doc), 1, 1)))


def leave(doc: Doc) -> None:
    doc._.treecrf_weight = None


def read(folder: Path, changed: Callable[[Doc], None], share: tuple[int, int]) -> int:
    """Reads docs of which the third is changed, as a worker does; returns how many these are."""
    register_weights()
    docs = make_docs(4, seed=0)
    changed(docs[2])
    path = folder / "some.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    paths = {"paths.train": str(path), "paths.dev": str(path)}
    one_view = {"corpora.train.views": ["sentences"]}
    config = Config().from_str(ready_config("ner"), overrides={**paths, **one_view})
    site = plan_of(spacy.util.load_model_from_config(config, auto_fill=True), None)
    return len(DocState(1).read_docs(0, DocPart(str(path), share), site).lengths)


@pytest.mark.parametrize("changed", [weigh_doc, weigh_span, weigh_token, teach])
@pytest.mark.parametrize("share", [(0, 1), (1, 2)])
def test_weights_and_lattices_of_docs_are_refused_with_file_and_example(
    tmp_path: Path, changed: Callable[[Doc], None], share: tuple[int, int]
) -> None:
    with pytest.raises(
        ValueError, match=r"^treecrf: part .*some\.spacy.*: example 3 .* has .*spacy tr"
    ):
        read(tmp_path, changed, share)


def test_a_weight_that_is_none_is_no_weight(tmp_path: Path) -> None:
    assert read(tmp_path, leave, (0, 1)) == 4
