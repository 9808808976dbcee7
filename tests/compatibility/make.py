"""This script saves models and pipelines of one version, and what they say, for later versions.

`python -m tests.compatibility.make tests/compatibility/0.1.0` runs it with the version that is
installed. A folder that exists never changes: it is what that version once wrote.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Token
from spacy.training import Example

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
    __version__,
)
from tests.compatibility import training_data as data
from tests.compatibility.inputs import ITEMS, KIND, docs, set_extensions
from tests.compatibility.predicting import (
    COMMAND_LINE,
    SPACY,
    load_estimator,
    load_pipeline,
    predictions,
    treecrf_pipes,
)
from tests.compatibility.training_data import X, Y

DECIMALS = 6
COMPACT = (",", ":")
MIN_MARGIN = 1e-4  # a closer second best could win on another processor
TIED = {"models/untrained.treecrf"}  # all labels have exactly the same score

SMALL: dict[str, Any] = {
    "rounds": 4,
    "linear_rounds": 2,
    "leaves": 16,
    "min_rows": 1,
    "min_count": 1,
    "threads": 1,
}
LARGE: dict[str, Any] = {**SMALL, "leaves": 80}
FEW: dict[str, Any] = {"rounds": 12, "min_rows": 1, "min_count": 1, "threads": 1}
MISSING = ("instance_weighting", "surrogate", "imputation", "indicator")


def fitted_estimators() -> dict[str, Any]:
    """There is one of every kind and important variant."""
    drawn = {**SMALL, "subsample": 0.6}
    seeds = [BoostedCRF(**drawn, seed=seed).fit(X, Y) for seed in (0, 1)]
    base = BoostedCRF(**{**SMALL, "leaves": 6})
    return {
        "separate": BoostedCRF(**SMALL, family="separate").fit(X, Y),
        "joint": BoostedCRF(**LARGE, family="joint", order=2).fit(X, Y),
        "gradient": BoostedCRF(**SMALL, family="joint", step="gradient").fit(X, Y),
        "conjugate": BoostedCRF(**SMALL, family="separate", step="conjugate").fit(X, Y),
        **{
            name.replace("_", "-"): BoostedCRF(**SMALL, family="joint", missing=name).fit(X, Y)
            for name in MISSING
        },
        "bio": BoostedCRF(**SMALL, constraints="bio", predictor="marginal").fit(X, data.BIO),
        "observed": BoostedCRF(**SMALL, constraints="observed", gamma="mixing").fit(X, data.BIO),
        "order-0": BoostedCRF(**SMALL, order=0).fit(X, Y),
        "untrained": BoostedCRF(**{**SMALL, "rounds": 0}).fit(X, Y),
        "linear": BoostedCRF(**{**SMALL, "linear_rounds": 4}).fit(X, Y),
        "large-trees": BoostedCRF(**LARGE, penalty=0.0, trim=0.0).fit(X, data.NOISE),
        "unbiased": BoostedCRF(**SMALL, unbiased=True, pseudo_rounds=3).fit(X, Y),
        "partial-labels": BoostedCRF(**SMALL).fit(X, data.WITH_GAPS, X[:20], Y[:20]),
        "beam": BoostedCRF(**SMALL, family="separate", beam=2).fit(X, Y),
        "average": BoostedCRF.average(seeds),
        "perceptron": PerceptronTagger(rounds=2, threads=1).fit(X, Y),
        "perceptron-voted": PerceptronTagger(
            rounds=3, method="voted", constraints="bio", threads=1
        ).fit(X, data.BIO),
        "secoc-joint": SECOCCRF(base=base, beam=2, threads=1).fit(X, Y),
        "secoc-columns": SECOCCRF(base=base, decoding="l1", threads=1).fit(X, Y),
        "secoc-cascade": SECOCCRF(base=base, history=2, folds=3, threads=1).fit(X, Y),
        "secoc-perceptron": SECOCCRF(
            base=PerceptronTagger(rounds=2), code="exhaustive", folds=2, threads=1
        ).fit(X, Y),
        "memm": BoostedMEMM(**LARGE, order=2).fit(X, Y),
        "memm-beam": BoostedMEMM(
            **SMALL, order=3, search="beam", right_to_left=True, constraints="bio"
        ).fit(X, data.BIO),
        "future": FutureFeatureMEMM(**FEW, bag=2).fit(X, data.FUTURE),
        "future-greedy": FutureFeatureMEMM(
            **FEW, order=2, right_to_left=True, search="greedy", seed=1
        ).fit(data.X_REVERSED, data.FUTURE_REVERSED),
    }


COMMON: dict[str, Any] = {"min_rows": 1, "min_count": 2, "threads": 1}
CRF: dict[str, Any] = {
    "@architectures": "spacy_treecrf.BoostedCRF.v1",
    "linear_rounds": 2,
    "leaves": 8,
    **COMMON,
}
MEMM: dict[str, Any] = {**CRF, "@architectures": "spacy_treecrf.MEMM.v1"}
FUTURE: dict[str, Any] = {
    "@architectures": "spacy_treecrf.FutureFeatureMEMM.v1",
    "bag": 2,
    "dev_share": 0.0,
    **COMMON,
}
PERCEPTRON: dict[str, Any] = {
    "@architectures": "spacy_treecrf.Perceptron.v1",
    "min_count": 2,
    "threads": 1,
}
SECOC: dict[str, Any] = {"@architectures": "spacy_treecrf.SECOC.v1", "base": CRF, "threads": 1}
IN_COLUMNS: dict[str, Any] = {**SECOC, "base": {**CRF, "rounds": 4}, "folds": 2}

WORDS: dict[str, Any] = {
    "@misc": "spacy_treecrf.TokenFeatures.v1",
    "attrs": {"LOWER": [-1, 0], "SHAPE": [0, 1]},
    "prefixes": [],
    "suffixes": [2],
}
PHRASES: dict[str, Any] = {
    **WORDS,
    "patterns": {"capital": "^[A-Z]", "date": "[0-9]+\\.[0-9]+\\."},
    "pattern_window": [-1, 0],
    "gazetteers": {"city": ["New York", "Rome", "new oslo"], "first-name": ["Ann", "Bob", "Zoe"]},
    "gazetteer_from_entities": True,
}
DOCUMENT: dict[str, Any] = {
    **WORDS,
    "document": ["case", "repeated", "neighbours", "heading", "runs", "opening"],
    "document_window": [-1, 0],
}
EXTENSIONS: dict[str, Any] = {
    **WORDS,
    "attrs": {"LOWER": [0], "LENGTH": [0], "IS_TITLE": [0]},
    "extensions": {
        "compat_last": [-1, 0],
        "compat_capital": [0, 1],
        "compat_length": [-1, 0],
        "compat_vector": [0],
    },
}
CHARACTERS: dict[str, Any] = {
    "@misc": "spacy_treecrf.CharacterFeatures.v1",
    "window": [-2, -1, 0, 1, 2],
    "class_window": [-1, 0, 1],
    "ngrams": [2],
    "ngram_window": [-1, 0, 1],
    "groups": {"place": ["bpm", "tdszln"]},
    "group_window": [0, 1],
}
KINDS = f"ext:{KIND}"


def function(name: str) -> dict[str, Any]:
    """The features are those of a registered function, and the length of a token."""
    return {**WORDS, "attrs": {"LENGTH": [0]}, "suffixes": [], "function": {"@misc": name}}


def as_it_is(nlp: Language) -> None:
    """It changes nothing."""


@dataclass(frozen=True)
class Recipe:
    """A recipe says how a stored pipeline is made."""

    task: Any
    model: dict[str, Any]
    features: dict[str, Any] = field(default_factory=lambda: WORDS)
    settings: dict[str, Any] = field(default_factory=dict)
    steps: int = 2
    input: str = "sentences"
    examples: Callable[[Language], list[Example]] = data.word_examples
    prepare: Callable[[Language], Any] = as_it_is  # before the pipe is added
    finish: Callable[[Language], Any] = as_it_is  # after training

    def nlp(self) -> Language:
        nlp = spacy.blank("xx", config=TOKENIZERS.get(self.input, {}))
        self.prepare(nlp)
        config = {"task": self.task, "model": self.model, "features": self.features}
        nlp.add_pipe("treecrf", config={**config, "rounds_per_step": 3, **self.settings})
        if self.steps:
            examples = self.examples(nlp)
            nlp.initialize(lambda: examples)
            for _ in range(self.steps):
                nlp.update(examples)
        self.finish(nlp)
        return nlp


TOKENIZERS: dict[str, dict[str, Any]] = {
    "letters": {"nlp": {"tokenizer": {"@tokenizers": "spacy_treecrf.CharacterTokenizer.v1"}}}
}


def add_label(nlp: Language) -> None:
    for pipe in treecrf_pipes(nlp).values():
        pipe.add_label("NEW")


def add_sentencizer(nlp: Language) -> None:
    nlp.add_pipe("sentencizer")


def add_tagger(nlp: Language) -> None:
    config = {"task": "tag", "model": CRF, "features": WORDS, "rounds_per_step": 3}
    nlp.add_pipe("treecrf", name="tagger", config=config)


PIPELINES: dict[str, Recipe] = {
    "tag": Recipe("tag", {**CRF, "family": "separate"}),
    "tag-order-0": Recipe("tag", {**CRF, "order": 0, "predictor": "marginal"}),
    "tag-without-probabilities": Recipe("tag", CRF, settings={"probabilities": False}),
    "tag-vectors": Recipe(
        "tag", CRF, {**WORDS, "vectors": 3, "vector_window": [-1, 0]}, prepare=data.add_vectors
    ),
    "tag-vector-indicators": Recipe(
        "tag",
        CRF,
        {**WORDS, "vectors": 4, "vector_columns": "indicators", "vector_window": [0]},
        prepare=data.add_vectors,
    ),
    "tag-clusters": Recipe("tag", CRF, {**WORDS, "clusters": [2, 0]}, prepare=data.add_clusters),
    "tag-extensions": Recipe("tag", {**CRF, "missing": "instance_weighting"}, EXTENSIONS),
    "tag-outside-missing": Recipe(
        "tag", {**CRF, "missing": "indicator"}, {**WORDS, "outside_is_missing": True}
    ),
    "tag-new-label": Recipe("tag", CRF, finish=add_label),
    "tag-perceptron": Recipe("tag", PERCEPTRON),
    "tag-secoc-columns": Recipe("tag", {**IN_COLUMNS, "training": "columns"}),
    "tag-secoc-cascade": Recipe(
        "tag", {**IN_COLUMNS, "history": "all", "cascade": "training", "decoding": "l1"}
    ),
    "tag-memm": Recipe("tag", {**MEMM, "order": 2}),
    "pos": Recipe({"@misc": "spacy_treecrf.PosTask.v1", "overwrite": False}, CRF),
    "pos-secoc-perceptron": Recipe(
        "pos", {**IN_COLUMNS, "base": {**PERCEPTRON, "rounds": 2}, "decoding": "l1"}
    ),
    "pos-memm-greedy": Recipe("pos", {**MEMM, "search": "greedy"}),
    "ents": Recipe("ents", CRF, PHRASES),
    "ents-joint": Recipe("ents", {**CRF, "family": "joint", "step": "gradient"}),
    "ents-document": Recipe(
        {"@misc": "spacy_treecrf.EntsTask.v1", "overwrite": True}, CRF, DOCUMENT
    ),
    "ents-sentences": Recipe(
        "ents", CRF, settings={"sequence": "sentence", "min_prob": 0.8}, prepare=add_sentencizer
    ),
    "ents-labels-only": Recipe("ents", CRF, steps=0, input="nothing", finish=add_label),
    "ents-perceptron-voted": Recipe("ents", {**PERCEPTRON, "method": "voted"}, steps=1),
    "ents-memm-right-to-left": Recipe("ents", {**MEMM, "right_to_left": True}),
    "ents-future-beam": Recipe("ents", {**FUTURE, "search": "beam", "order": 2}, steps=4),
    "spans": Recipe("spans", {**CRF, "missing": "imputation"}, EXTENSIONS),
    "spans-secoc": Recipe("spans", SECOC),
    "spans-chunks": Recipe(
        {"@misc": "spacy_treecrf.SpansTask.v1", "key": "chunks"},
        CRF,
        {**WORDS, "attrs": {"LOWER": [0], "TAG": [-1, 0, 1]}},
        prepare=add_tagger,
    ),
    "spans-memm-beam": Recipe("spans:chunks", {**MEMM, "search": "beam", "beam_width": 3}),
    "ext-future": Recipe(
        KINDS,
        {**FUTURE, "dev_share": 0.2},
        {**WORDS, "attrs": {"LOWER": [0]}, "suffixes": []},
        steps=5,
        examples=data.future_examples,
    ),
    "ext-letters": Recipe(
        KINDS, {**CRF, "order": 2}, CHARACTERS, input="letters", examples=data.letter_examples
    ),
    "ext-letters-outside-missing": Recipe(
        KINDS,
        {**CRF, "missing": "surrogate"},
        {**CHARACTERS, "lower": False, "outside_is_missing": True},
        input="letters",
        examples=data.letter_examples,
    ),
    "ext-lines": Recipe(
        {"@misc": "spacy_treecrf.ExtTask.v1", "attr": KIND},
        CRF,
        {**function("spacy_treecrf.LineFeatures.v1"), "function_window": [-1, 0]},
        input="lines",
        examples=data.line_examples,
    ),
    "ext-pictures": Recipe(
        KINDS,
        CRF,
        function("spacy_treecrf.PictureFeatures.v1"),
        input="pictures",
        examples=data.picture_examples,
    ),
}


def save_estimators(folder: Path) -> dict[str, dict[str, str]]:
    """The result says how each file is read, and which input it gets."""
    readers = {}
    for name, estimator in fitted_estimators().items():
        estimator.save(folder / f"{name}.treecrf")
        readers[f"{name}.treecrf"] = {"reader": type(estimator).__name__, "input": "items"}
    return readers


def save_column_models(folder: Path) -> dict[str, dict[str, str]]:
    quick = ["--rounds", "4", "--linear-rounds", "2", "--leaves", "8", "--threads", "1"]
    quick += ["--min-rows", "1", "--min-count", "1"]
    with TemporaryDirectory() as sources:
        for name, text in (
            ("words", data.word_columns()),
            ("dev", data.word_columns(8, seed=5)),
            ("letters", data.letter_columns()),
        ):
            Path(sources, f"{name}.conll").write_text(text, encoding="utf-8")
        words = ["words.conll", "--dev", "dev.conll", "--constraints", "bio"]
        letters = ["letters.conll", "--columns", "2=number,3=skip", "--unlabelled", "?"]
        for name, options in (("columns-words", words), ("columns-letters", letters)):
            output = (folder / f"{name}.treecrf").absolute()
            command = [sys.executable, "-m", "spacy_treecrf", "train", *options, "-o", str(output)]
            subprocess.run([*command, *quick], cwd=sources, check=True)
    return {
        "columns-words.treecrf": {"reader": COMMAND_LINE, "input": "word columns"},
        "columns-letters.treecrf": {"reader": COMMAND_LINE, "input": "letter columns"},
    }


def save_pipelines(folder: Path) -> dict[str, dict[str, str]]:
    set_extensions()
    if not Token.has_extension(KIND):
        Token.set_extension(KIND, default=None)
    for name, recipe in PIPELINES.items():
        nlp = recipe.nlp()
        if isinstance(nlp.tokenizer, Tokenizer):
            nlp.tokenizer = Tokenizer(nlp.vocab)  # docs are given as words; its rules are large
        nlp.meta["spacy_version"] = ">=3.7,<4"  # no warning in every other version
        nlp.to_disk(folder / name)
    return {name: {"reader": SPACY, "input": recipe.input} for name, recipe in PIPELINES.items()}


def smallest_margin(path: Path, reader: str, input: str) -> float:
    """The margin is the share by which the best labelling is more probable than the second."""
    if reader == SPACY:
        nlp = load_pipeline(path)
        made = [doc for doc in nlp.pipe(docs(nlp, input)) if len(doc)]
        best = [pipe.nbest(doc, 2) for pipe in treecrf_pipes(nlp).values() for doc in made]
    elif reader == COMMAND_LINE:
        found = predictions(path, reader, input)["probabilities"]
        best = [[(None, p) for p in sequence["best"]] for sequence in found]
    else:
        best = load_estimator(path, reader).predict_nbest([x for x in ITEMS if x], n=2)
    pairs = [(paths[0][1], paths[1][1]) for paths in best if len(paths) > 1]
    return min((1 - second / first for first, second in pairs), default=1.0)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return None if value is None else round(value, DECIMALS)


def expectation(path: Path, how: dict[str, str]) -> dict[str, Any]:
    found = predictions(path, **how)
    return {**how, "labels": found["labels"], "probabilities": rounded(found["probabilities"])}


def main(folder: Path) -> None:
    """The folder appears when all that belongs into it is there."""
    if folder.exists() or folder.name != __version__:
        sys.exit(f"{folder} exists, or is not named after the version {__version__}")
    with TemporaryDirectory() as elsewhere:
        new = Path(elsewhere, folder.name)
        fill(new)
        shutil.copytree(new, folder)


def fill(folder: Path) -> None:
    models, pipelines = folder / "models", folder / "pipelines"
    models.mkdir(parents=True)
    pipelines.mkdir()
    readers = {
        **{f"models/{name}": how for name, how in save_estimators(models).items()},
        **{f"models/{name}": how for name, how in save_column_models(models).items()},
        **{f"pipelines/{name}": how for name, how in save_pipelines(pipelines).items()},
    }
    lines = []
    for name, how in sorted(readers.items()):
        margin = smallest_margin(folder / name, **how)
        if margin < MIN_MARGIN and name not in TIED:
            sys.exit(f"{name}: two labellings are almost equally probable, by {margin}")
        expected = expectation(folder / name, how)
        lines.append(
            f"{json.dumps(name)}: {json.dumps(expected, ensure_ascii=False, separators=COMPACT)}"
        )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
