"""Vectors of floret: sums of the vectors of a word's letter n-grams, so that every word has one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spacy.language import Language
from spacy.training.initialize import convert_vectors

HASHES = 2  # rows of the table that each n-gram has: two n-grams seldom share both
NGRAMS = (3, 5)  # letters, least and most
WINDOW = 2  # words at each side: near ones tell what kind of name stands between them
KEPT = 1e-3  # share of the text from which on a word is left out at times; floret's own is less
NO_LABEL = "\x00"  # floret takes words that begin so for labels, and cuts words at this character


@dataclass(frozen=True)
class VectorSettings:
    """How vectors are learned.

    dimensions: Numbers in a vector, each a column of the tagger.
    epochs: How often the text is read. Of small texts vectors of many epochs served taggers less.
    rows: Size of the table of n-grams, of which some share a row if it is small.
    min_count: Words that are rarer have no vector of their own while others learn; afterwards they
        have that of their letters.
    lower: Whether "Bank", "BANK" and "bank" share a vector.
    threads: With one, the same text gives the same vectors.
    """

    dimensions: int = 50
    epochs: int = 5
    rows: int = 200_000
    min_count: int = 2
    lower: bool = True
    threads: int = 1


@dataclass(frozen=True)
class TextSize:
    """What was read: words, different words, and those of them that were learned."""

    words: int
    different: int
    learned: int


def require_floret() -> None:
    """Refuse to go on without floret."""
    if find_spec("floret") is None:
        raise ValueError(
            'treecrf: `vectors` needs floret, the extra "vectors" of spacy-treecrf; pip install '
            'floret, or pip install "spacy-treecrf[vectors]"'
        )


def learn_vectors(
    sentences: Iterable[list[str]], nlp: Language, settings: VectorSettings
) -> TextSize:
    """Give a pipeline the vectors that its words have in the sentences."""
    require_floret()
    with tempfile.TemporaryDirectory(prefix="treecrf-") as folder:
        text, table = Path(folder, "text"), Path(folder, "table")
        size = _write_text(text, sentences, settings)
        _run_floret(text, table, settings)
        attribute = "LOWER" if settings.lower else "ORTH"
        convert_vectors(nlp, table, truncate=0, prune=-1, mode="floret", attr=attribute)
    return size


def _write_text(path: Path, sentences: Iterable[list[str]], settings: VectorSettings) -> TextSize:
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for words in sentences:
            if settings.lower:
                words = [word.lower() for word in words]
            counts.update(words)
            file.write(" ".join(words) + "\n")
    learned = sum(count >= settings.min_count for count in counts.values())
    if learned < 2:
        raise ValueError(
            f"treecrf: of {counts.total():,} words in the text, {learned} occur at least "
            f"{settings.min_count} times; give more text"
        )
    return TextSize(counts.total(), len(counts), learned)


def _run_floret(text: Path, table: Path, settings: VectorSettings) -> None:
    """Learn in a process of its own, because floret does not listen to Ctrl-C while it learns."""
    arguments = {
        "input": str(text),
        "model": "skipgram",
        "mode": "floret",
        "dim": settings.dimensions,
        "epoch": settings.epochs,
        "ws": WINDOW,
        "bucket": settings.rows,
        "minCount": settings.min_count,
        "hashCount": HASHES,
        "minn": NGRAMS[0],
        "maxn": NGRAMS[1],
        "t": KEPT,
        "thread": settings.threads,
        "label": NO_LABEL,
        "verbose": 2 if sys.stderr is not None and sys.stderr.isatty() else 0,
    }
    module = "spacy_treecrf.vectors.floret_process"
    command = [sys.executable, "-m", module, json.dumps(arguments), str(table)]
    done = subprocess.run(command)
    if done.returncode == -signal.SIGINT:  # Ctrl-C, of which this process has not heard yet
        raise KeyboardInterrupt
    if done.returncode:
        raise ValueError(
            f"treecrf: floret stopped with exit code {done.returncode}; if no error is above, "
            "memory may have run out: use fewer rows or dimensions"
        )
