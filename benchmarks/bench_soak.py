"""Memory while docs of ever new words go through `nlp.pipe`, with and without memory zones.

Beside the pipe, spaCy's tokenizer alone reads the same texts: what its vocabulary grows by, the
pipe cannot help. Each side is a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from timing import report, run_python, timed

KNOWN = ["Ann", "Bob", "Paris", "saw", "left", "the", "old", "house", "in", "."]
CITIES = {"Paris"}
NAMES = {"Ann", "Bob"}
SIDES = ("vocab", "vocab, zones", "pipe", "pipe, zones")
POINTS = 50  # of the curve
# Docs before the curve begins, in zones: kernels are compiled, all caches of the pipe (32,768 words
# each) have been full several times, and the C library keeps the memory of a batch, which it
# returns to the system the first few times.
WARM_UP_ZONES = 20


def texts(n_docs: int, n_new: int, seed: int) -> Iterator[str]:
    """Docs of 20 words each; n_new of each are new, and were never seen before."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for i in range(n_docs):
        words = rng.choices(KNOWN, k=20 - n_new)
        words += ["".join(rng.choices(letters, k=6)) + f"{i:x}" for _ in range(n_new)]
        rng.shuffle(words)
        yield " ".join(words)


def megabytes() -> float:
    """The memory that this process holds now; where the system does not tell, the most so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def tokenizer_alone() -> Any:
    """A pipeline without pipes. One that had a pipe would fill the room that it left first."""
    import spacy

    return spacy.blank("xx")


def trained() -> Any:
    """A small pipe for entities, with its default features."""
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("xx")
    model = {"@architectures": "spacy_treecrf.BoostedCRF.v1", "rounds": 10, "threads": 1}
    nlp.add_pipe("treecrf", config={"task": "ents", "model": model})
    examples = []
    for text in texts(100, 2, seed=1):
        words = text.split()
        tags = ["U-PERSON" if w in NAMES else "U-CITY" if w in CITIES else "O" for w in words]
        examples.append(Example.from_dict(nlp.make_doc(text), {"entities": tags}))
    nlp.initialize(lambda: examples)
    for _ in range(10):
        nlp.update(examples)
    return nlp


def soak(side: str, n_docs: int, n_new: int, zone_docs: int) -> dict[str, Any]:
    """The memory after each part of the docs, and how long all of them took."""
    nlp = tokenizer_alone() if side.startswith("vocab") else trained()

    def annotate(stream: Iterator[str]) -> Iterator[int]:
        """Zone by zone; yields how many docs each one had."""
        while batch := list(itertools.islice(stream, zone_docs)):
            with nlp.memory_zone() if side.endswith("zones") else nullcontext():
                for _ in nlp.pipe(batch):
                    pass
            yield len(batch)

    list(annotate(texts(WARM_UP_ZONES * zone_docs, n_new, seed=2)))
    curve = [(0, megabytes())]

    def work() -> None:
        done = 0
        for n in annotate(texts(n_docs, n_new, seed=3)):
            done += n
            if done * POINTS // n_docs > (done - n) * POINTS // n_docs:
                curve.append((done, megabytes()))

    _, seconds = timed(work)
    return {"curve": curve, "seconds": seconds}


def plot(curves: dict[str, list[tuple[int, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for side, curve in curves.items():
        docs, held = zip(*curve, strict=True)
        axes.plot(docs, held, label=side)
    axes.set_xlabel("docs")
    axes.set_ylabel("MB")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=200_000)
    parser.add_argument("--new-words", type=int, default=10, help="in each doc, of 20")
    parser.add_argument("--zone", type=int, default=1000, help="docs in a memory zone")
    parser.add_argument("--plot", type=Path, help="write a picture of memory over time here")
    parser.add_argument("--side", choices=SIDES, help="only this side, in this process")
    options = parser.parse_args()
    sizes = options.docs, options.new_words, options.zone
    if options.side:
        print(json.dumps(soak(options.side, *sizes)))
        return
    numbers = ("--docs", str(sizes[0]), "--new-words", str(sizes[1]), "--zone", str(sizes[2]))
    found = {side: run_python(__file__, "--side", side, *numbers) for side in SIDES}
    for side, result in found.items():
        held = [value for _, value in result["curve"]]
        report(
            "soak",
            side=side,
            docs=options.docs,
            new_words=options.docs * options.new_words,
            seconds=result["seconds"],
            start_megabytes=held[0],
            end_megabytes=held[-1],
            grown_megabytes=held[-1] - held[0],
            second_half_megabytes=held[-1] - held[len(held) // 2],
        )
    if options.plot:
        plot({side: result["curve"] for side, result in found.items()}, options.plot)


if __name__ == "__main__":
    main()
