"""Readers for the [corpora] block of a config."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.corpus import walk_corpus
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_treecrf.corpora.docs import register_extension, to_docs
from spacy_treecrf.corpora.registry import CORPORA
from spacy_treecrf.corpora.synthetic import synthetic_splits
from spacy_treecrf.labels.doc_keys import DOC_WEIGHT, LATTICE, WEIGHT

EXTENSION = "_."
SENTENCES, TEXT = VIEWS = "sentences", "text"
Reader = Callable[[Language], Iterator[Example]]


def corpus(
    path: Path | None,
    inputs: list[str] = [],  # noqa: B006
    limit: int = 0,
    join: int = 1,
    views: list[str] = [SENTENCES],  # noqa: B006
) -> Reader:
    """A reader like spacy.Corpus.v1 with gold tokens, whose docs may keep some annotation as input.

    It reads its files once: with a doc for each word, this takes longer than an evaluation.

    path: A .spacy file or a folder of them.
    inputs: Attributes of spaCy (TAG, SENT_START, ...) and token extensions ("_.pixels") that are
        features of the docs to predict, rather than labels. Extensions are registered if need be.
    limit: The number of docs to read; 0: all.
    join: How many docs are laid end to end as the sentences of one. Docs of a single word each take
        ten times the memory, and are copied in every step of training. The pipe must have
        sequence="auto" or "sentence". Docs with a weight or a teacher's lattice are not joined.
    views: How each doc is shown, one example for each: "sentences" (with its boundaries, where
        SENT_START is among the inputs) and "text" (without boundaries, as a text comes in use). A
        pipe that learns from both does well on both. A doc without boundaries is shown once.
    """
    if join < 1:
        raise ValueError(f"treecrf: join of spacy_treecrf.Corpus.v1 is {join}; use 1 or more")
    if not views or len(set(views)) < len(views) or not set(views) <= set(VIEWS):
        raise ValueError(
            f"treecrf: views of spacy_treecrf.Corpus.v1 is {views!r}; use a list of "
            f"{' and '.join(map(repr, VIEWS))}, each at most once"
        )
    if TEXT in views and join > 1:
        raise ValueError(
            f"treecrf: join of spacy_treecrf.Corpus.v1 is {join}, and views names 'text', which "
            "has no boundaries; use join = 1, or leave 'text' out"
        )
    if len(views) > 1 and "SENT_START" not in inputs:
        raise ValueError(
            "treecrf: views of spacy_treecrf.Corpus.v1 names both, which are the same without "
            'boundaries; add "SENT_START" to inputs'
        )
    if path is None:
        raise ValueError("treecrf: path of spacy_treecrf.Corpus.v1 is null; name a .spacy file")
    attrs = [name for name in inputs if not name.startswith(EXTENSION)]
    extensions = {name.removeprefix(EXTENSION) for name in inputs} - set(attrs)
    for name in extensions:
        register_extension(name)
    if join > 1:
        attrs.append("SENT_START")
    references: dict[Vocab, list[Doc]] = {}

    def read(nlp: Language) -> Iterator[Example]:
        if nlp.vocab not in references:
            references.clear()
            docs = _read_docs(path, nlp.vocab, limit)
            docs = docs if join == 1 else _joined(path, docs, join)
            references[nlp.vocab] = [shown for doc in docs for shown in _shown(doc, views)]
            _check_extensions(path, references[nlp.vocab], extensions)
        for reference in references[nlp.vocab]:
            yield Example(_with_inputs(reference, attrs, extensions), reference)

    return read


def _joined(path: Path, docs: Iterator[Doc], size: int) -> Iterator[Doc]:
    """Docs laid end to end, so many at a time, each of them a sentence or more."""
    while part := list(islice(docs, size)):
        _refuse_what_joining_drops(path, part)
        starts = list(accumulate(map(len, part), initial=0))
        joined = Doc.from_docs(part)
        if len(joined) and joined.has_annotation("DEP"):
            raise ValueError(
                f"treecrf: docs of {path} are parsed, which tells their sentences; use join = 1"
            )
        # One array: the setter of a token looks through its whole doc for a parse each time.
        is_start = joined.to_array("SENT_START").astype(np.int64) == 1
        is_start[[start for start in starts if start < len(joined)]] = True
        values: Any = np.where(is_start, 1, -1).astype(np.uint64)
        joined.from_array(["SENT_START"], values)
        yield joined


def _shown(doc: Doc, views: list[str]) -> Iterator[Doc]:
    """The doc in each of the views; only once, if it has no boundaries."""
    has_boundaries = doc.has_annotation("SENT_START")
    for view in views if has_boundaries else views[:1]:
        if view == SENTENCES or not has_boundaries:
            yield doc
            continue
        text = doc.copy()
        nothing: Any = np.zeros(len(doc), np.uint64)
        text.from_array(["SENT_START"], nothing)
        yield text


def _refuse_what_joining_drops(path: Path, docs: list[Doc]) -> None:
    for doc in docs:
        stored: dict[Any, Any] = doc.user_data
        for key, what in ((LATTICE, "a teacher's lattice"), (DOC_WEIGHT, f"doc._.{WEIGHT}")):
            if stored.get(key) is not None:
                raise ValueError(
                    f"treecrf: a doc of {path} has {what}, which is lost where docs are joined; "
                    "use join = 1 of spacy_treecrf.Corpus.v1"
                )


def _stored_docs(file: Path) -> DocBin:
    try:
        return DocBin().from_disk(file)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # msgpack and zlib raise many kinds
        reason = " ".join(str(error).split())
        raise ValueError(
            f"treecrf: {file} does not hold docs of spaCy ({reason}); write it by DocBin.to_disk, "
            "or by `spacy-treecrf convert`"
        ) from error


def _read_docs(path: Path, vocab: Vocab, limit: int) -> Iterator[Doc]:
    if not Path(path).exists():
        raise FileNotFoundError(
            f"treecrf: {path} does not exist; prepare the corpus, or name another .spacy file"
        )
    files = walk_corpus(Path(path), ".spacy")
    if not files:
        raise ValueError(
            f"treecrf: {path} is neither a .spacy file nor a folder of them; `spacy-treecrf "
            "convert` makes one of a column file or of an annotation tool's export"
        )
    n = 0
    texts: dict[str, str] = {}
    unpacker = srsly.msgpack.Unpacker(raw=False, use_list=False)
    for file in files:
        stored = _stored_docs(file)
        # spaCy makes an unpacker for the user data of each doc, which takes longer than all else.
        packed, stored.user_data = stored.user_data, [None] * len(stored)
        for doc, data in zip(stored.get_docs(vocab), packed, strict=True):
            if limit and n == limit:
                return
            if data is not None:
                unpacker.feed(data)
                doc.user_data.update(_sharing_texts(unpacker.unpack(), texts))
            n += 1
            yield doc


def _sharing_texts(user_data: dict[Any, Any], texts: dict[str, str]) -> dict[Any, Any]:
    """The same user data, whose equal texts are one object: there are three for each token."""

    def shared(value: Any) -> Any:
        return texts.setdefault(value, value) if type(value) is str else value

    return {
        tuple(map(shared, key)) if type(key) is tuple else key: shared(value)
        for key, value in user_data.items()
    }


def _check_extensions(path: Path, docs: list[Doc], extensions: set[str]) -> None:
    seen = {name for doc in docs for name, _ in _extension_values(doc)}
    if unseen := sorted(extensions - seen):
        raise ValueError(
            f"treecrf: no token of {path} has {EXTENSION}{unseen[0]}, which setting 'inputs' "
            "names; write the docs with DocBin(store_user_data=True)"
        )


def _extension_values(doc: Doc) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The names of extensions, with the items of the user data that hold their values.

    spaCy keeps the value of a token under ("._.", name, its first character, None).
    """
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[3] is None:
            yield key[1], (key, value)


def _with_inputs(reference: Doc, attrs: list[str], extensions: set[str]) -> Doc:
    doc = Doc(
        reference.vocab,
        words=[token.text for token in reference],
        spaces=[bool(token.whitespace_) for token in reference],
    )
    if attrs and len(doc):
        names: Any = attrs
        values: Any = reference.to_array(names).reshape(len(doc), -1)
        doc.from_array(names, values)
    if extensions:
        doc.user_data.update(
            item for name, item in _extension_values(reference) if name in extensions
        )
    return doc


# Many parameters: spaCy reads them from the block of a config.
def synthetic(
    setting: str = "transition",
    part: str = "train",
    seed: int = 0,
    n_labels: int = 40,
    n_observations: int = 40,
    p_o: float | None = None,
    k_o: int | None = None,
    p_l: float | None = None,
    k_l: int | None = None,
) -> Reader:
    """Docs of the synthetic corpus, without any file.

    setting: "transition" or "both".
    part: "train", "dev" or "test".
    p_o, k_o, p_l, k_l: How sharp observations and transitions are; None: as in the setting.
    """
    sharpness = {"p_o": p_o, "k_o": k_o, "p_l": p_l, "k_l": k_l}
    changes = {name: value for name, value in sharpness.items() if value is not None}
    splits = synthetic_splits(
        setting, seed, n_labels=n_labels, n_observations=n_observations, **changes
    )
    if part not in splits:
        raise ValueError(f"treecrf: part is {part!r}; use one of {', '.join(splits)}")
    sequences = splits[part]

    def read(nlp: Language) -> Iterator[Example]:
        for doc in to_docs(sequences, CORPORA["synthetic"], nlp.vocab):
            yield Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc)

    return read


registry.readers("spacy_treecrf.Corpus.v1", func=corpus)
registry.readers("spacy_treecrf.Synthetic.v1", func=synthetic)
