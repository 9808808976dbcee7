"""A config that trains in a moment, and its data."""

from __future__ import annotations

from pathlib import Path

from spacy.tokens import DocBin

from tests.pipeline.tiny_pipes import CORPUS, corpus, new_nlp

LEAVES = "components.treecrf.model.leaves"
LINEAR = "components.treecrf.model.linear_rounds"


def write_config(folder: Path) -> Path:
    nlp = new_nlp("ents")
    config = nlp.config.copy()
    config["training"].update(
        {
            "batcher": {"@batchers": "spacy_treecrf.WholeCorpus.v1"},
            "max_steps": 1,
            "eval_frequency": 1,
            "dropout": 0.0,
            "score_weights": {"treecrf_score": 0.5, "ents_token_acc": 0.5},
        }
    )
    path = folder / "tiny.cfg"
    config.to_disk(path)
    return path


def write_docs(path: Path, repeats: int = 1) -> Path:
    """The tiny corpus; repeats add a word to each sentence, so that texts differ."""
    nlp = new_nlp("ents")
    sentences = [f"{s} x{i}|N|O" if i else s for i in range(repeats) for s in CORPUS]
    docs = [example.reference for example in corpus(nlp, "ents", sentences)]
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path
