"""Labels of letters: shipped configs beside CRFsuite on the same letters, window and words.

Letter to sound (CMUdict) and hyphenation (Moby, both splits), each side measured in the same run.
CRFsuite's columns are the letters in the config's window, and with --same-columns, in another run
of it, also the config's n-grams and classes of letters; its penalty is the best on the dev part.
With --rivals phonetisaurus, letter to sound is measured beside Phonetisaurus: whole words.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.util import load_config

from spacy_treecrf.corpora import LabelledSequence, load_corpus, prepare_corpus
from spacy_treecrf.corpora.aligner import without_stress
from spacy_treecrf.evaluation.judging import judge
from spacy_treecrf.features.characters import class_of
from spacy_treecrf.taggers.loading import load_tagger

from phonetisaurus_rival import (
    bench_phonetisaurus,
    gold_phonemes,
    measured,
    pronounced,
    pronunciation_scores,
)
from spacy_data import CONFIGS
from timing import cpu_timed, report

PENALTIES = (0.1, 1.0)
ITERATIONS, QUICK_ITERATIONS = 200, 20
QUICK_WORDS = 500
EDGE = "<edge>"
LETTER_TO_SOUND = "phoneme"  # the layer
RIVALS = ("crfsuite", "phonetisaurus")

Item = dict[str, str]
Labels = list[list[Any]]  # by word, a label for each letter


@dataclass(frozen=True)
class Job:
    task: str  # a task of project.yml, which is also the name of its config
    corpus: str
    split: str
    layer: str
    settings: dict[str, Any] = field(default_factory=dict)  # as the config's comments advise


JOBS = {
    "letters": Job("letters", "cmudict", "default", "phoneme"),
    "letters-all": Job(
        "letters",
        "cmudict",
        "all",
        "phoneme",
        {
            "components.treecrf.features.ngrams": [2, 3, 4],
            "components.treecrf.features.ngram_edges": True,
            "components.treecrf.model.min_count": 4,
            "components.treecrf.model.linear_rounds": 5,
            "components.treecrf.model.leaves": 256,
            "components.treecrf.model.beam": 24,
            "components.treecrf.rounds_per_step": 27,
            "training.max_steps": 0,
            "training.max_epochs": 1,
            "corpora.dev.limit": 2000,
        },
    ),
    "hyphenate": Job("hyphenate", "moby", "small", "hyphen"),
    "hyphenate-large": Job(
        "hyphenate",
        "moby",
        "large",
        "hyphen",
        {
            "components.treecrf.model.linear_rounds": 18,
            "components.treecrf.model.min_count": 3,
            "components.treecrf.rounds_per_step": 10,
            "training.max_steps": 1,
        },
    ),
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


def bench_ours(
    job: Job, words: int, settings: dict[str, Any], test: list[LabelledSequence]
) -> dict[str, Any]:
    """`spacy train` with the shipped config, evaluation and compilation included in its time."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_corpus(job.corpus, Path(folder), split=job.split)
        options = {f"paths.{part}": f"{folder}/{part}.spacy" for part in ("train", "dev")}
        options |= {"corpora.train.limit": words, **job.settings, **settings}
        command = [sys.executable, "-m", "spacy", "train", str(CONFIGS / f"{job.task}.cfg")]
        command += ["--output", f"{folder}/model"]
        for name, value in options.items():
            command += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
        _, took = measured(command)
        model = f"{folder}/model/model-best"
        tagger = load_tagger(model)
        judged = judge(tagger, tagger.read(f"{folder}/test.spacy", gold=True)[1])
        found = {**took, **scores(judged.gold, judged.predicted)}
        if job.layer == LETTER_TO_SOUND:
            said, asked = cpu_timed(lambda: pronounced(model, test))
            found["pronouncer"] = {
                "asked_seconds": asked["seconds"],
                **pronunciation_scores(gold_phonemes(test), said),
            }
    return found


def bench_crfsuite(
    job: Job, splits: dict[str, list[LabelledSequence]], columns: Columns, iterations: int
) -> dict[str, Any]:
    gold = {part: [sequence.labels[job.layer] for sequence in splits[part]] for part in splits}
    items = {part: [columns.items(sequence.words) for sequence in splits[part]] for part in splits}
    trials = []
    for penalty in PENALTIES:
        model, took = cpu_timed(
            lambda: _train(items["train"], gold["train"], penalty, iterations)  # noqa: B023
        )
        dev, test = (scores(gold[part], _tag(model, items[part])) for part in ("dev", "test"))
        os.unlink(model)
        trials.append((dev["letters"], {"penalty": penalty, **took, **test}))
    return max(trials, key=lambda trial: trial[0])[1]


def _train(X: list[list[Item]], y: Labels, penalty: float, iterations: int) -> str:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": penalty, "max_iterations": iterations})
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    handle, path = tempfile.mkstemp(suffix=".crfsuite")
    os.close(handle)
    trainer.train(path)
    return path


def _tag(model: str, X: list[list[Item]]) -> Labels:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return [tagger.tag(items) for items in X]


@dataclass(frozen=True)
class Columns:
    """The columns of spacy_treecrf.CharacterFeatures.v1 as feature dicts.

    more: Whether n-grams and classes are columns too, beside single letters.
    """

    features: dict[str, Any]  # the block of the config
    more: bool

    def items(self, letters: Sequence[str]) -> list[Item]:
        n = len(letters)
        # A mark is a letter of n-grams that may take in an edge of the word.
        reach = 1 if self.features.get("ngram_edges") else 0
        marked = [*["<"] * reach, *letters, *[">"] * reach]
        columns = {f"char[{o}]": (o, 1) for o in self.features["window"]}
        around = self.features["ngram_window"]
        for length in self.features["ngrams"] if self.more else []:
            starts = range(min(around), max(around) - length + 2)
            columns |= {f"chars{length}[{o}]": (o, length) for o in starts}
        items: list[Item] = [
            {
                name: "".join(marked[t + o + reach : t + o + reach + length])
                if t + o >= (-reach if length > 1 else 0)
                and t + o + length <= n + (reach if length > 1 else 0)
                else EDGE
                for name, (o, length) in columns.items()
            }
            for t in range(n)
        ]
        for t, item in enumerate(items):
            for o in self.features["class_window"] if self.more else []:
                item[f"class[{o}]"] = class_of(letters[t + o]) if 0 <= t + o < n else EDGE
        return items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--words", type=int, default=0, help="training words; 0: all")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of CRFsuite")
    parser.add_argument(
        "--rivals", nargs="+", choices=RIVALS, default=["crfsuite"], help="who is measured, too"
    )
    parser.add_argument("--same-columns", action="store_true", help="also with all our columns")
    parser.add_argument("--quick", action="store_true", help="few words, rounds and iterations")
    options = parser.parse_args()
    words, iterations, settings = options.words, options.iterations, {}
    if options.quick:
        words, iterations = QUICK_WORDS, QUICK_ITERATIONS
        settings = {"training.max_steps": 1}

    for name in options.jobs:
        job = JOBS[name]
        splits = load_corpus(job.corpus, split=job.split)
        splits["train"] = splits["train"][: words or None]
        config = load_config(CONFIGS / f"{job.task}.cfg")
        features = config["components"]["treecrf"]["features"]
        rivals = {"crfsuite": Columns(features, more=False)}
        if options.same_columns:
            rivals["crfsuite_same_columns"] = Columns(features, more=True)
        theirs = {}
        if "crfsuite" in options.rivals:
            for rival, columns in rivals.items():
                theirs[rival] = bench_crfsuite(job, splits, columns, iterations)
        of_words = {}
        if "phonetisaurus" in options.rivals and job.layer == LETTER_TO_SOUND:
            of_words["phonetisaurus"] = bench_phonetisaurus(splits)
        ours = bench_ours(job, words, settings, splits["test"])
        everyone = {**theirs, **of_words}
        report(
            name,
            training_words=len(splits["train"]),
            test_words=len(splits["test"]),
            labels=len({label for r in splits["train"] for label in r.labels[job.layer]}),
            iterations=iterations,
            ours=ours,
            **everyone,
            letters_gain={rival: ours["letters"] - own["letters"] for rival, own in theirs.items()},
            words_gain={
                rival: ours["pronouncer"]["words"] - own["words"] for rival, own in of_words.items()
            },
            time_ratio={rival: ours["seconds"] / own["seconds"] for rival, own in everyone.items()},
            cpu_ratio={
                rival: ours["cpu_seconds"] / own["cpu_seconds"] for rival, own in everyone.items()
            },
        )


if __name__ == "__main__":
    main()
