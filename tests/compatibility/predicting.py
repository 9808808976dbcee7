"""These functions find what a stored model says of an input, by public calls only."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

import spacy_treecrf
from tests.compatibility.inputs import COLUMN_FILES, ITEMS, KIND, docs, set_extensions

SPACY, COMMAND_LINE = "spacy", "command line"  # other readers are estimators


def predictions(path: Path, reader: str, input: str) -> dict[str, Any]:
    """Labels are to be the same for ever; rounding may change probabilities a little.

    The reader is spacy, the command line, or the name of an estimator.
    """
    if reader == SPACY:
        return pipeline_predictions(load_pipeline(path), input)
    if reader == COMMAND_LINE:
        return column_predictions(path, COLUMN_FILES[input])
    return estimator_predictions(load_estimator(path, reader))


def save_again(path: Path, reader: str, input: str, copy: Path) -> None:
    """The copy is what is saved after loading."""
    if reader == SPACY:
        load_pipeline(path).to_disk(copy)
    elif reader == COMMAND_LINE:
        copy.write_bytes(path.read_bytes())
        data = copy.with_suffix(".conll")
        data.write_text(COLUMN_FILES[input], encoding="utf-8")
        # it has all of its rounds: nothing is learned
        command_line("train", str(data), "-o", str(copy), "--resume", "--threads", "1")
    else:
        load_estimator(path, reader).save(copy)


def load_estimator(path: Path, name: str) -> Any:
    return getattr(spacy_treecrf, name).load(path)


def load_pipeline(path: Path) -> Language:
    set_extensions()
    return spacy.load(path)


def treecrf_pipes(nlp: Language) -> dict[str, Any]:
    return {name: pipe for name, pipe in nlp.pipeline if _is_ours(nlp, name)}


def _is_ours(nlp: Language, name: str) -> bool:
    return nlp.get_pipe_meta(name).factory == "treecrf"


def estimator_predictions(estimator: Any) -> dict[str, Any]:
    classes = estimator.classes_
    marginals = estimator.predict_marginals(ITEMS)
    return {
        "labels": {"classes": classes, "predicted": estimator.predict(ITEMS)},
        "probabilities": [[[row[name] for name in classes] for row in rows] for rows in marginals],
    }


def column_predictions(path: Path, data: str) -> dict[str, Any]:
    """Probabilities are those of the labels and of the two best labellings."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "data.conll"), Path(folder, "labelled.jsonl")
        source.write_text(data, encoding="utf-8")
        options = ["--json", "--probabilities", "--nbest", "2", "--threads", "1"]
        command_line("tag", str(path), str(source), "-o", str(target), *options)
        sequences = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    return {
        "labels": [sequence["labels"] for sequence in sequences],
        "probabilities": [
            {
                "chosen": sequence["probabilities"],
                "best": [labelling["probability"] for labelling in sequence["nbest"]],
            }
            for sequence in sequences
        ],
    }


def pipeline_predictions(nlp: Language, input: str) -> dict[str, Any]:
    pipes = treecrf_pipes(nlp)
    found = list(nlp.pipe(docs(nlp, input)))
    names = {
        name: {"labels": list(pipe.labels), "sequence_labels": list(pipe.sequence_labels)}
        for name, pipe in pipes.items()
    }
    return {
        "labels": {"pipes": names, "docs": [_annotation(doc) for doc in found]},
        "probabilities": [_probabilities(doc, pipes) for doc in found],
    }


def _annotation(doc: Doc) -> dict[str, Any]:
    """The annotation is all that some task could have set; what no token has is left out."""
    tokens: dict[str, list[Any]] = {
        "tag": [token.tag_ for token in doc],
        "pos": [token.pos_ for token in doc],
    }
    if Token.has_extension(KIND):
        tokens["kind"] = [token._.get(KIND) for token in doc]
    spans = {"ents": _spans(doc.ents)} | {key: _spans(group) for key, group in doc.spans.items()}
    words = {"words": [token.text for token in doc]}
    return words | {key: values for key, values in {**tokens, **spans}.items() if any(values)}


def _spans(spans: Iterable[Span]) -> list[list[Any]]:
    return [[span.start, span.end, span.label_] for span in spans]


def _probabilities(doc: Doc, pipes: dict[str, Any]) -> dict[str, Any]:
    groups: dict[str, Iterable[Span]] = {"ents": doc.ents, **doc.spans}
    return {
        "tokens": list(map(_probability, doc)),
        "spans": {key: list(map(_probability, spans)) for key, spans in groups.items()},
        "marginals": {name: pipe.marginals(doc).tolist() for name, pipe in pipes.items()},
    }


def _probability(part: Token | Span) -> float | None:
    """It is None also where no pipe of the process ever sets probabilities."""
    return part._.treecrf_prob if part.has_extension("treecrf_prob") else None


def command_line(*arguments: str) -> None:
    """It runs `python -m spacy_treecrf` in this process, which has loaded all that it needs."""
    with patch.object(sys, "argv", ["spacy-treecrf", *arguments]):
        try:
            runpy.run_module("spacy_treecrf", run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"spacy-treecrf {' '.join(arguments)} failed") from end
