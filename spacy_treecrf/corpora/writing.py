"""Prepared corpora on disk: .spacy for pipelines, column files, or JSON lines."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_treecrf.corpora.docs import tasks_of, to_docs
from spacy_treecrf.corpora.record import PARTS, Record, n_tokens
from spacy_treecrf.corpora.registry import Corpus, Report, find_corpus, load_corpus

FORMATS = ("spacy", "conll", "jsonl")
BLANK = "␣"  # what stands for blanks in a column
_BLANKS = re.compile(r"\s")
Writer = Callable[[Path, Sequence[Record]], None]


@dataclasses.dataclass(frozen=True)
class Prepared:
    path: Path
    sequences: int
    tokens: int


def prepare_corpus(
    name: str,
    output: Path,
    *,
    format: str = "spacy",
    layer: str | None = None,
    force: bool = False,
    split: str | None = None,
    inputs: Sequence[Path] = (),
    columns: Sequence[str] | None = None,
    folder: Path | None = None,
    seed: int = 0,
    dev_share: float = 0.1,
    verify: bool = True,
    report: Report | None = None,
) -> dict[str, Prepared]:
    """Write the parts of a corpus into the folder `output`, all of them or none.

    format: "spacy", "conll" or "jsonl".
    layer: The labels in the last column of "conll"; None: the corpus's main layer.
    force: Whether to replace files of an earlier run.
    The other options are those of load_corpus.
    """
    corpus = find_corpus(name)
    if format not in FORMATS:
        raise ValueError(f"treecrf: there is no format {format!r}; use one of {', '.join(FORMATS)}")
    if layer is not None and corpus.tasks and layer not in corpus.tasks:
        known = ", ".join(corpus.tasks)
        raise ValueError(f"treecrf: corpus {name} has no layer {layer!r}; use one of {known}")
    output = Path(output)
    paths = {part: output / f"{part}.{format}" for part in PARTS}
    _refuse_existing(output, paths, force)
    splits = load_corpus(
        name,
        split=split,
        inputs=inputs,
        columns=columns,
        folder=folder,
        seed=seed,
        dev_share=dev_share,
        verify=verify,
        report=report,
    )
    writer = _writer(format, corpus, layer, [record for part in PARTS for record in splits[part]])
    output.mkdir(parents=True, exist_ok=True)
    beside = {part: path.with_name(f".{path.name}.{os.getpid()}") for part, path in paths.items()}
    prepared = {}
    try:
        for part in PARTS:
            records = splits[part]
            if records:
                if report is not None:
                    report(f"writing {len(records)} sequences to {paths[part]}")
                writer(beside[part], records)
                prepared[part] = Prepared(paths[part], len(records), n_tokens(records))
        for part, path in paths.items():
            if part in prepared:
                os.replace(beside[part], path)
            else:
                path.unlink(missing_ok=True)  # of an earlier run with another split
    finally:
        for path in beside.values():
            path.unlink(missing_ok=True)
    return prepared


def _refuse_existing(output: Path, paths: Mapping[str, Path], force: bool) -> None:
    if output.exists() and not output.is_dir():
        raise FileExistsError(f"treecrf: {output} is a file; name a folder for the corpus")
    existing = [path for path in paths.values() if path.exists()]
    if existing and not force:
        raise FileExistsError(
            f"treecrf: {existing[0]} exists; name another folder, or use force to replace it"
        )


def _writer(format: str, corpus: Corpus, layer: str | None, records: Sequence[Record]) -> Writer:
    """How to write a part; what holds for all parts is found from all records."""
    if format == "jsonl":
        return write_jsonl
    if format == "conll":
        label = layer or (corpus.label if corpus.tasks else next(iter(records[0].labels)))
        given = [name for name in corpus.given if name != label]
        return lambda path, part: write_conll(path, part, label, given)
    tasks = tasks_of(corpus, records)
    return lambda path, part: write_spacy(path, part, corpus, tasks)


def write_spacy(
    path: Path,
    records: Sequence[Record],
    corpus: Corpus,
    tasks: Mapping[str, str] | None = None,
) -> None:
    """For `spacy train`. Extensions travel in the docs' user data."""
    docs = DocBin(store_user_data=False)
    # One packer for all docs: spaCy makes one for each, which takes longer than all the rest.
    packer = srsly.msgpack.Packer(use_bin_type=True)
    for doc in to_docs(records, corpus, Vocab(), tasks):
        docs.add(doc)
        docs.user_data.append(packer.pack(doc.user_data))
    docs.store_user_data = True
    path.write_bytes(docs.to_bytes())


def write_conll(
    path: Path, records: Sequence[Record], label: str, given: Sequence[str] = ()
) -> None:
    """Columns with tabs between: the word, features, given layers, and the label last."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            columns = [list(map(_cell, record.words)), *_feature_columns(record)]
            columns += [list(map(_cell, record.labels[layer])) for layer in (*given, label)]
            file.writelines("\t".join(row) + "\n" for row in zip(*columns, strict=True))
            file.write("\n")


def _feature_columns(record: Record) -> Iterator[list[str]]:
    """A vector becomes a column for each dimension."""
    for values in record.features.values():
        if isinstance(values[0], list):
            yield from ([_cell(value) for value in column] for column in zip(*values, strict=True))
        else:
            yield [_cell(value) for value in values]


def _cell(value: Any) -> str:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return _BLANKS.sub(BLANK, text) or BLANK


def write_jsonl(path: Path, records: Sequence[Record]) -> None:
    srsly.write_jsonl(path, (dataclasses.asdict(record) for record in records))
