"""Writing prepared corpora: .spacy files for pipelines, column files, or JSON lines."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_treecrf.corpora.docs import tasks_of, to_docs
from spacy_treecrf.corpora.labelled_sequence import PARTS, LabelledSequence, Splits, n_tokens
from spacy_treecrf.corpora.reading import find_file
from spacy_treecrf.corpora.registry import Corpus, Report, find_corpus, load_corpus
from spacy_treecrf.storage.files import check_target, refuse_inputs, replacing

FORMATS = ("spacy", "conll", "jsonl")
BLANK = "␣"  # written for a blank in a field
_BLANKS = re.compile(r"\s")
# The content of the file of a part, bit by bit.
Content = Callable[[Sequence[LabelledSequence]], Iterable[bytes]]


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A written file, and how much it holds."""

    path: Path
    sequences: int
    tokens: int


# Many parameters: those of `load_corpus`, by name, and where and how to write.
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
    sources = [*inputs, *(find_file(file, folder) for file in corpus.files)]
    _refuse_existing(output, paths, force, sources)
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
    if not any(splits.values()):
        raise ValueError(
            f"treecrf: there are no sequences of the data set {name} to write; use other inputs, "
            "or another split"
        )
    content = _content(
        format, corpus, layer, [sequence for part in PARTS for sequence in splits[part]]
    )
    output.mkdir(parents=True, exist_ok=True)
    return _write_parts(splits, paths, content, report)


def _write_parts(
    splits: Splits, paths: Mapping[str, Path], content: Content, report: Report | None
) -> dict[str, Prepared]:
    """Write all parts, then put all of them in place; a part without sequences goes."""
    prepared = {}
    with contextlib.ExitStack() as stack:
        for part in PARTS:
            sequences = splits[part]
            if sequences:
                if report is not None:
                    report(f"writing {len(sequences)} sequences to {paths[part]}")
                file = stack.enter_context(replacing(paths[part]))
                file.writelines(content(sequences))
                file.flush()  # so that a full disk shows before any part is in place
                prepared[part] = Prepared(paths[part], len(sequences), n_tokens(sequences))
    for part in set(paths) - set(prepared):
        paths[part].unlink(missing_ok=True)  # written by an earlier run with another split
    return prepared


def _refuse_existing(
    output: Path, paths: Mapping[str, Path], force: bool, sources: Sequence[Path | None]
) -> None:
    if output.exists() and not output.is_dir():
        raise FileExistsError(f"treecrf: {output} is a file; name a folder for the corpus")
    existing = [path for path in paths.values() if path.exists()]
    if existing and not force:
        raise FileExistsError(
            f"treecrf: {existing[0]} exists; name another folder, or use force to replace it"
        )
    for path in existing:
        check_target(path)
        refuse_inputs(path, sources)


def _content(
    format: str, corpus: Corpus, layer: str | None, sequences: Sequence[LabelledSequence]
) -> Content:
    """The function that forms a part; what holds for all parts is found from all sequences."""
    if format == "jsonl":
        return _jsonl_lines
    if format == "conll":
        label = layer or (corpus.label if corpus.tasks else next(iter(sequences[0].labels)))
        given = [name for name in corpus.given if name != label]
        return lambda part: conll_lines(part, label, given)
    tasks = tasks_of(corpus, sequences)
    return lambda part: [_doc_bin(part, corpus, tasks)]


def write_spacy(
    path: Path,
    sequences: Sequence[LabelledSequence],
    corpus: Corpus,
    tasks: Mapping[str, str] | None = None,
) -> None:
    """Write docs for `spacy train`; extensions travel in the docs' user data."""
    with replacing(path) as file:
        file.write(_doc_bin(sequences, corpus, tasks))


def _doc_bin(
    sequences: Sequence[LabelledSequence], corpus: Corpus, tasks: Mapping[str, str] | None
) -> bytes:
    docs = DocBin(store_user_data=False)
    # One packer for all docs: spaCy makes one for each, which takes longer than all the rest.
    packer = srsly.msgpack.Packer(use_bin_type=True)
    for doc in to_docs(sequences, corpus, Vocab(), tasks):
        docs.add(doc)
        docs.user_data.append(packer.pack(doc.user_data))
    docs.store_user_data = True
    data: bytes = docs.to_bytes()
    return data


def write_conll(
    path: Path, sequences: Sequence[LabelledSequence], label: str, given: Sequence[str] = ()
) -> None:
    """Write a column file with tabs: the word, features, given layers, and the label last."""
    with replacing(path) as file:
        file.writelines(conll_lines(sequences, label, given))


def conll_lines(
    sequences: Sequence[LabelledSequence], label: str, given: Sequence[str]
) -> Iterator[bytes]:
    for sequence in sequences:
        columns = [list(map(_cell, sequence.words)), *_feature_columns(sequence)]
        columns += [list(map(_cell, sequence.labels[layer])) for layer in (*given, label)]
        yield from (("\t".join(row) + "\n").encode() for row in zip(*columns, strict=True))
        yield b"\n"


def _feature_columns(sequence: LabelledSequence) -> Iterator[list[str]]:
    """The columns of the file that hold features; a vector has one for each dimension."""
    for values in sequence.features.values():
        if isinstance(values[0], list):
            yield from ([_cell(value) for value in column] for column in zip(*values, strict=True))
        else:
            yield [_cell(value) for value in values]


def _cell(value: Any) -> str:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return _BLANKS.sub(BLANK, text) or BLANK


def write_jsonl(path: Path, sequences: Sequence[LabelledSequence]) -> None:
    """Write a JSON object for each sequence and line."""
    with replacing(path) as file:
        file.writelines(_jsonl_lines(sequences))


def _jsonl_lines(sequences: Sequence[LabelledSequence]) -> Iterator[bytes]:
    for sequence in sequences:
        yield (srsly.json_dumps(dataclasses.asdict(sequence)) + "\n").encode()
