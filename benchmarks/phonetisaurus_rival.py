"""Phonetisaurus (PyPI `phonetisaurus`), trained and asked by its own command, and what both say."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy

from spacy_treecrf.corpora import LabelledSequence
from spacy_treecrf.corpora.aligner import without_stress
from spacy_treecrf.letters.pronouncer import edits
from spacy_treecrf.letters.rescoring import phonemes_of

LAYER = "phoneme"
Phonemes = Sequence[str]


def measured(command: Sequence[str], text: str = "") -> tuple[str, dict[str, float]]:
    """What a command prints, and its seconds, processor seconds and peak memory with children."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as printed:
        given.write(text)
        given.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=printed, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        if status:
            raise SystemExit(f"{' '.join(command)}\n{said}")
        printed.seek(0)
        return printed.read(), {
            "seconds": seconds,
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "peak_megabytes": _megabytes(used),
        }


def _megabytes(used: resource.struct_rusage) -> float:
    """The peak of the largest process, as the system counts it."""
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def gold_phonemes(words: Sequence[LabelledSequence]) -> list[Phonemes]:
    return [phonemes_of(word.labels[LAYER]) for word in words]


def pronunciation_scores(gold: Sequence[Phonemes], found: Sequence[Phonemes]) -> dict[str, float]:
    """Percent of words right and of wrong phonemes, with stress and without."""
    pairs = [(tuple(g), tuple(f)) for g, f in zip(gold, found, strict=True)]
    plain = [tuple(tuple(map(without_stress, one)) for one in pair) for pair in pairs]
    n_phonemes = sum(map(len, gold))
    return {
        "words": 100.0 * sum(g == f for g, f in pairs) / len(pairs),
        "words_without_stress": 100.0 * sum(g == f for g, f in plain) / len(plain),
        "phoneme_error": 100.0 * sum(edits(g, f) for g, f in pairs) / n_phonemes,
        "phoneme_error_without_stress": 100.0 * sum(edits(g, f) for g, f in plain) / n_phonemes,
    }


def bench_phonetisaurus(splits: dict[str, list[LabelledSequence]]) -> dict[str, Any]:
    """Its default training on the same words and phonemes, and its best pronunciations."""
    program = str(Path(sys.executable).with_name("phonetisaurus"))
    with tempfile.TemporaryDirectory() as folder:
        lexicon, model = Path(folder, "lexicon.dict"), str(Path(folder, "g2p.fst"))
        lines = [
            f"{''.join(word.words)} {' '.join(phonemes)}\n"
            for word, phonemes in zip(splits["train"], gold_phonemes(splits["train"]), strict=True)
        ]
        lexicon.write_text("".join(lines), encoding="utf-8")
        _, took = measured([program, "train", "--model", model, str(lexicon)])
        words = ["".join(word.words) for word in splits["test"]]
        said, asked = measured([program, "predict", "--model", model], "\n".join(words) + "\n")
    found: dict[str, Phonemes] = {}
    for line in said.splitlines():
        word, *phonemes = line.split()
        found.setdefault(word, phonemes)
    scores = pronunciation_scores(gold_phonemes(splits["test"]), [found.get(w, ()) for w in words])
    return {**took, "asked_seconds": asked["seconds"], **scores}


def pronounced(model: str, words: Sequence[LabelledSequence]) -> list[Phonemes]:
    """What a pipeline with a pronouncer says."""
    nlp = spacy.load(model)
    texts = ("".join(word.words) for word in words)
    return [
        doc._.pronunciations[0][0].split() if doc._.pronunciations else []
        for doc in nlp.pipe(texts, batch_size=512)
    ]
