"""Parts of a training corpus to train on and to score on.

Docs are assigned by a hash of their text: a part never changes, and docs of the same text, such as
two pronunciations of a word, are never on both sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.training.corpus import walk_corpus
from spacy.vocab import Vocab


def position(text: str, seed: int) -> float:
    """The place of a text between 0 and 1, by its hash."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def read_docs(source: Path) -> list[Doc]:
    vocab = Vocab()
    docs: list[Doc] = []
    if not source.exists():
        raise ValueError(f"treecrf: there is no training corpus {source}; check the path")
    for path in sorted(walk_corpus(source, ".spacy")):
        try:
            docs += DocBin(store_user_data=True).from_disk(path).get_docs(vocab)
        except Exception as error:  # msgpack and zlib raise many kinds
            raise ValueError(f"treecrf: {path} does not hold docs of spaCy: {error}") from error
    return docs


def write_folds(
    source: Path, folder: Path, *, folds: int, hold_out: float, seed: int
) -> list[tuple[Path, Path]]:
    """Write pairs of files to train and to score on: one by `hold_out`, or one for each fold."""
    docs = read_docs(source)
    pairs = []
    for fold in range(max(folds, 1)):
        is_held_out = held_out_rule(fold, folds, hold_out, seed)
        held_out = [is_held_out(doc.text) for doc in docs]
        if all(held_out) or not any(held_out):
            raise ValueError(
                f"treecrf: {source} has {len(docs)} docs, too few to hold out a part; use more "
                "docs, or name held-out data by --dev"
            )
        pair = folder / f"train{fold}.spacy", folder / f"dev{fold}.spacy"
        for path, wanted in zip(pair, (False, True), strict=True):
            _write(path, (doc for doc, own in zip(docs, held_out, strict=True) if own == wanted))
        pairs.append(pair)
    return pairs


def held_out_rule(fold: int, folds: int, hold_out: float, seed: int) -> Callable[[str], bool]:
    """A function that tells whether a text is held out: by `hold_out`, or in one of the folds."""
    if folds:
        return lambda text: int(position(text, seed) * folds) == fold
    return lambda text: position(text, seed) < hold_out


def _write(path: Path, docs: Iterable[Doc]) -> None:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
