"""Labels of letters: shipped configs beside CRFsuite on the same letters, window and words.

Letter to sound (CMUdict) and hyphenation (Moby, both splits), each side measured in the same run.
CRFsuite's columns are the letters in the config's window; its penalty is the best on the dev part.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.util import load_config

from spacy_treecrf.corpora import Record, load_corpus, prepare_corpus
from spacy_treecrf.corpora.aligner import without_stress
from spacy_treecrf.evaluation.judging import judge
from spacy_treecrf.evaluation.taggers import load_tagger

from corpora import corpus
from spacy_data import CONFIGS, run_spacy
from timing import report, timed

PENALTIES = (0.1, 1.0)
ITERATIONS, QUICK_ITERATIONS = 200, 20
QUICK_WORDS = 500
EDGE = "<edge>"

Labels = list[list[Any]]  # of each word, a label for each letter


@dataclass(frozen=True)
class Job:
    task: str  # of project.yml: the name of its config
    corpus: str
    split: str
    layer: str


JOBS = {
    "letters": Job("letters", "cmudict", "default", "phoneme"),
    "hyphenate": Job("hyphenate", "moby", "small", "hyphen"),
    "hyphenate-large": Job("hyphenate", "moby", "large", "hyphen"),
}


def scores(gold: Labels, predicted: Labels) -> dict[str, float]:
    """Percent of letters and of words whose labels are right; stress is a part of a phoneme."""
    pairs = list(zip(gold, predicted, strict=True))
    letters = [(g, p) for one, other in pairs for g, p in zip(one, other, strict=True)]
    return {
        "letters": _percent([g == p for g, p in letters]),
        "letters_without_stress": _percent([_plain(g) == _plain(p) for g, p in letters]),
        "words": _percent([g == p for g, p in pairs]),
    }


def _percent(right: Sequence[bool]) -> float:
    return 100.0 * sum(right) / len(right)


def _plain(label: str) -> str:
    return "-".join(map(without_stress, label.split("-")))


def bench_ours(job: Job, words: int, settings: dict[str, Any]) -> dict[str, Any]:
    """`spacy train` with the shipped config, evaluation and compilation included in its time."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_corpus(job.corpus, Path(folder), split=job.split)
        data = {f"paths.{part}": f"{folder}/{part}.spacy" for part in ("train", "dev")}
        _, seconds = timed(
            lambda: run_spacy(
                "train",
                CONFIGS / f"{job.task}.cfg",
                *("--output", f"{folder}/model"),
                **data,
                **{"corpora.train.limit": words},
                **settings,
            )
        )
        tagger = load_tagger(f"{folder}/model/model-best")
        judged = judge(tagger, tagger.read(f"{folder}/test.spacy", gold=True)[1])
    return {"seconds": seconds, **scores(judged.gold, judged.predicted)}


def bench_crfsuite(
    job: Job, splits: dict[str, list[Record]], window: Sequence[int], iterations: int
) -> dict[str, Any]:
    trials = []
    for penalty in PENALTIES:
        path, seconds = timed(
            lambda: _train(job, splits["train"], window, penalty, iterations)  # noqa: B023
        )
        dev, test = (scores(*_tag(job, path, splits[part], window)) for part in ("dev", "test"))
        os.unlink(path)
        trials.append((dev["letters"], {"penalty": penalty, "seconds": seconds, **test}))
    return max(trials, key=lambda trial: trial[0])[1]


def _train(
    job: Job, records: list[Record], window: Sequence[int], penalty: float, iterations: int
) -> str:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": penalty, "max_iterations": iterations})
    for record in records:
        trainer.append(letter_items(record.words, window), record.labels[job.layer])
    handle, path = tempfile.mkstemp(suffix=".crfsuite")
    os.close(handle)
    trainer.train(path)
    return path


def _tag(
    job: Job, model: str, records: list[Record], window: Sequence[int]
) -> tuple[Labels, Labels]:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    gold = [record.labels[job.layer] for record in records]
    return gold, [tagger.tag(letter_items(record.words, window)) for record in records]


def letter_items(letters: Sequence[str], window: Sequence[int]) -> list[dict[str, str]]:
    n = len(letters)
    return [
        {f"char[{o}]": letters[t + o] if 0 <= t + o < n else EDGE for o in window} for t in range(n)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--words", type=int, default=0, help="training words; 0: all")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of CRFsuite")
    parser.add_argument("--quick", action="store_true", help="few words, rounds and iterations")
    options = parser.parse_args()
    words, iterations, settings = options.words, options.iterations, {}
    if options.quick:
        words, iterations = QUICK_WORDS, QUICK_ITERATIONS
        settings = {"training.max_steps": 1}
    os.environ.setdefault("TREECRF_CORPORA", str(corpus("moby_hyph").parent))

    for name in options.jobs:
        job = JOBS[name]
        splits = load_corpus(job.corpus, split=job.split)
        splits["train"] = splits["train"][: words or None]
        config = load_config(CONFIGS / f"{job.task}.cfg")
        window = config["components"]["treecrf"]["features"]["window"]
        rival = bench_crfsuite(job, splits, window, iterations)
        ours = bench_ours(job, words, settings)
        report(
            name,
            training_words=len(splits["train"]),
            test_words=len(splits["test"]),
            labels=len({label for r in splits["train"] for label in r.labels[job.layer]}),
            window=[min(window), max(window)],
            ours=ours,
            crfsuite=rival,
            letters_gain=ours["letters"] - rival["letters"],
            words_gain=ours["words"] - rival["words"],
            time_ratio=ours["seconds"] / rival["seconds"],
        )


if __name__ == "__main__":
    main()
