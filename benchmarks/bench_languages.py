"""CoNLL-2002, Spanish and Dutch names: CRFsuite, ours on its columns, the config of entities.

    TREECRF_CORPORA=DIR python benchmarks/bench_languages.py

Plain columns are words in lower case at -2..2, shapes at -1..1, the word, and its prefixes of 2 to
4 and suffixes of 1 to 4 letters. CRFsuite's penalties are chosen on the last sixth of the training
sentences, then it learns from all of them. The config is configs/ner.cfg with --nlp.lang, on the
documents that the readers find, and then with what the guide for a new language adds to it, part
by part: word lists of `spacy-treecrf lists`, lists of training entities, and clusters where
spacy-lookups-data has them. Each pipe is measured without `agreement` and `parallels` (`f1`), with
an agreement of 0.5 (`f1_agreement`), with both of 0.5 (`f1_parallels`), and with the config's
`expected_f1` as well (`f1_chosen`); the others take the most probable labels. `--sides ablation`
tries longer affixes, too.
Docs have the boundaries of the corpus, in training as in testing: --views as-config trains on the
text without boundaries as well, as the config does, in twice the time.
F1 is that of testa, which is only measured; --choose measures on the last sixth of the training
documents instead.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spacy import util
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.vocab import Vocab

from spacy_treecrf import BoostedCRF
from spacy_treecrf.corpora import LabelledSequence, find_corpus, load_corpus
from spacy_treecrf.corpora.docs import to_docs
from spacy_treecrf.lists.writing import write_lists

from corpora import PAD, PREFIX, SUFFIX, Item, span_f1
from spacy_data import CONFIGS
from timing import cpu_timed, report

LANGUAGES = ("es", "nl")
HELD_OUT = 6  # the last of so many parts of the training file is where choices are made
PENALTIES = ((0.0, 1.0), (0.0, 0.1), (0.1, 0.1), (0.1, 0.01), (0.5, 0.01))  # c1, c2
ITERATIONS, CHOOSING_ITERATIONS, QUICK_ITERATIONS = 100, 50, 20
# Weights of agreement and parallels, and the F1 that is expected.
WAYS = {
    "f1": (0.0, 0.0, 0.0),
    "f1_agreement": (0.5, 0.0, 0.0),
    "f1_parallels": (0.5, 0.5, 0.0),
    "f1_chosen": (0.5, 0.5, 0.9),
}
STEPS = 7  # of five rounds; further ones changed F1 on held-out documents by less than 0.2
QUICK_SENTENCES, QUICK_STEPS = 600, 3
LOWER = [f"lower[{d}]" for d in range(-2, 3)]
SHAPE = [f"shape[{d}]" for d in range(-1, 2)]
FEATURES = "components.treecrf.features."
CLUSTERS = [4, 6, 10, 0]
LONG = [1, 2, 3, 4, 5, 6]
# What the ablation tries on top of all that the guide adds.
FURTHER: dict[str, dict[str, Any]] = {
    "affixes up to 6": {f"{FEATURES}prefixes": LONG, f"{FEATURES}suffixes": LONG},
}
WITH_CLUSTERS = ("de", "en", "es")  # languages whose table spacy-lookups-data has
SIDES = ("crfsuite", "plain", "config", "full", "ablation")


@dataclass(frozen=True)
class Data:
    """The sentences of a language, in their order."""

    language: str
    train: list[LabelledSequence]
    test: list[LabelledSequence]

    def docs(self, sequences: Sequence[LabelledSequence]) -> list[Doc]:
        return list(to_docs(sequences, find_corpus(f"conll2002{self.language}"), Vocab()))


def read(language: str, choose: bool, quick: bool, share: float = 1.0) -> Data:
    splits = load_corpus(f"conll2002{language}", dev_share=0)
    train, test = splits["train"], splits["test"]
    if choose:
        last = (train[-1].document or 0) + 1
        first = last - last // HELD_OUT
        test = [s for s in train if (s.document or 0) >= first]
        train = [s for s in train if (s.document or 0) < round(share * first)]
    if quick:
        train, test = train[:QUICK_SENTENCES], test[:QUICK_SENTENCES]
    return Data(language, train, test)


def plain_items(words: Sequence[str]) -> list[Item]:
    """Feature dicts of words, of any script."""
    lower = [PAD, PAD, *(word.lower() for word in words), PAD, PAD]
    shapes = [PAD, *map(shape, words), PAD]
    return [
        dict(zip(LOWER, lower[t : t + 5], strict=True))
        | dict(zip(SHAPE, shapes[t : t + 3], strict=True))
        | {"word": word}
        | {key: word[:n] for n, key in PREFIX}
        | {key: word[-n:] for n, key in SUFFIX}
        for t, word in enumerate(words)
    ]


def shape(word: str) -> str:
    """The word's letters and digits as X, x and d, runs cut to four."""
    signs = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    found = ""
    for sign in signs:
        if not found.endswith(4 * sign):
            found += sign
    return found


def items_of(sequences: Sequence[LabelledSequence]) -> list[list[Item]]:
    return [plain_items(sequence.words) for sequence in sequences]


def labels_of(sequences: Sequence[LabelledSequence]) -> list[list[str]]:
    return [sequence.labels["ner"] for sequence in sequences]


def crfsuite(data: Data, quick: bool) -> dict[str, Any]:
    first = len(data.train) - len(data.train) // HELD_OUT
    X, y = items_of(data.train), labels_of(data.train)
    iterations = QUICK_ITERATIONS if quick else CHOOSING_ITERATIONS
    tried = {
        penalties: crfsuite_f1(X[:first], y[:first], X[first:], y[first:], penalties, iterations)
        for penalties in PENALTIES
    }
    best = max(tried, key=lambda penalties: tried[penalties])
    test = items_of(data.test), labels_of(data.test)
    f1 = crfsuite_f1(X, y, *test, best, QUICK_ITERATIONS if quick else ITERATIONS)
    chosen = {f"c1={c1} c2={c2}": f1 for (c1, c2), f1 in tried.items()}
    return {"f1": f1, "c1": best[0], "c2": best[1], "held_out_f1": chosen}


def crfsuite_f1(
    X: list[list[Item]],
    y: list[list[str]],
    X_test: list[list[Item]],
    y_test: list[list[str]],
    penalties: tuple[float, float],
    iterations: int,
) -> float:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    c1, c2 = penalties
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": iterations})
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crfsuite.model")
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        return span_f1(y_test, [tagger.tag(items) for items in X_test])


def plain(data: Data, quick: bool) -> dict[str, Any]:
    settings = {"rounds": 15} if quick else {}
    model = BoostedCRF(**settings).fit(items_of(data.train), labels_of(data.train))
    return {"f1": span_f1(labels_of(data.test), model.predict(items_of(data.test)))}


def pipeline(data: Data, quick: bool, settings: dict[str, Any]) -> dict[str, Any]:
    """configs/ner.cfg on all training docs, a fixed number of steps: nothing is chosen by score."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {"train": Path(folder, "train.spacy"), "dev": Path(folder, "dev.spacy")}
        DocBin(docs=data.docs(data.train)).to_disk(paths["train"])
        DocBin(docs=data.docs(data.test)).to_disk(paths["dev"])
        overrides = {f"paths.{name}": str(path) for name, path in paths.items()}
        overrides |= {"nlp.lang": data.language, **settings}
        config = util.load_config(CONFIGS / "ner.cfg", overrides=overrides, interpolate=True)
        nlp = init_nlp(config)
        corpora = util.registry.resolve({"corpora": config["corpora"]})["corpora"]
        train = list(corpora["train"](nlp))
        for _ in range(QUICK_STEPS if quick else STEPS):
            nlp.update(train)
        found = {}
        pipe = nlp.get_pipe("treecrf")
        for name, way in WAYS.items():
            pipe.agreement, pipe.parallels, pipe.expected_f1 = way
            scores = nlp.evaluate(list(corpora["dev"](nlp)))
            found[name] = 100 * scores["ents_f"]
    types = {name: 100 * of["f"] for name, of in scores["ents_per_type"].items()}
    return {**found, "types_chosen": types}


def parts_of(language: str, lists: Path) -> dict[str, dict[str, Any]]:
    """What the guide adds to the config, each with all that stands before it."""
    parts: dict[str, dict[str, Any]] = {
        "config": {},
        "lists": {f"{FEATURES}gazetteers": {"lists": str(lists)}},
        "entities": {f"{FEATURES}gazetteer_from_entities": True},
    }
    if language in WITH_CLUSTERS:
        parts["clusters"] = {f"{FEATURES}clusters": CLUSTERS}
    settings: dict[str, Any] = {}
    cumulated = {}
    for name, own in parts.items():
        settings = settings | own
        cumulated[name] = settings
    return cumulated


def runs_of(
    data: Data, sides: Sequence[str], lists: Path, quick: bool, views: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The name of each training, and what does it."""
    parts = parts_of(data.language, lists)
    names = list(parts)
    if "crfsuite" in sides:
        yield "crfsuite", lambda: crfsuite(data, quick)
    if "plain" in sides:
        yield "plain", lambda: plain(data, quick)
    for n, name in enumerate(names):
        shown = {"config": n == 0, "full": n == len(names) - 1, "ablation": True}
        if any(shown.get(side) for side in sides):
            settings = parts[name] | views
            yield " + ".join(names[: n + 1]), partial(pipeline, data, quick, settings)
    for name, own in FURTHER.items() if "ablation" in sides else ():
        settings = parts[names[-1]] | own | views
        yield f"all of it + {name}", partial(pipeline, data, quick, settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    parser.add_argument(
        "--sides", nargs="+", choices=SIDES, default=SIDES[:-1], help="ablation: part by part"
    )
    parser.add_argument("--views", choices=["sentences", "as-config"], default="sentences")
    parser.add_argument("--choose", action="store_true", help="a part of the training file as test")
    parser.add_argument(
        "--share", type=float, default=1.0, help="with --choose: of the other training documents"
    )
    parser.add_argument("--quick", action="store_true", help="600 sentences, few rounds")
    options = parser.parse_args()
    views = {} if options.views == "as-config" else {"corpora.train.views": ["sentences"]}
    for language in options.languages:
        data = read(language, options.choose, options.quick, options.share)
        size = {"sentences": len(data.train), "test_sentences": len(data.test)}
        with tempfile.TemporaryDirectory() as folder:
            if set(options.sides) & {"full", "ablation"}:
                write_lists(language, Path(folder))
            for side, run in runs_of(data, options.sides, Path(folder), options.quick, views):
                found, times = cpu_timed(run)
                report("languages", language=language, side=side, **found, **size, **times)


if __name__ == "__main__":
    main()
