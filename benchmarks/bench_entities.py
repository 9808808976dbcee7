"""CoNLL-2003, what each part brings to configs/ner.cfg: clusters, vectors, lists, entities.

    TREECRF_CORPORA=DIR python benchmarks/bench_entities.py --parts clusters vectors lists entities

The last 180 documents of eng.train are held out; --documents trains on so many of those before
them, and --test on all of eng.train with testa as the test part, which is only measured. Each
model says what it has of documents with their sentence boundaries and as raw text: alone, with the
`agreement` of new pipes, with their `parallels` as well, and with the `expected_f1` of the config,
too. --fold holds other documents out, and --earlier learns from those before them alone: documents
are in the order of time, and testa comes after all of them. --own-vectors takes the vectors of a
pipeline that `spacy-treecrf vectors` has made of text without annotation.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy import util
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp

from spacy_treecrf.lists.writing import write_lists
from spacy_treecrf.pipeline.pipe import TreeCRF

from corpora import Document, read_conll2003
from spacy_data import CONFIGS, docs_of, write_docs, write_glove
from timing import cpu_timed, report

HELD_OUT = 180  # documents
# The first document that is held out.
FOLDS = {"last": 766, "first": 0, "middle": 380, "third": 406, "fourth": 586}
EXPECTED_F1 = 0.9  # of the config
# Agreement, parallels and expected F1.
WAYS = {
    "alone": (0.0, 0.0, 0.0),
    "agreed": (None, 0.0, 0.0),
    "parallel": (None, None, 0.0),
    "chosen": (None, None, EXPECTED_F1),
}
STEPS = 11  # of five rounds
QUICK_DOCUMENTS, QUICK_STEPS = 60, 3
FEATURES = "components.treecrf.features."
PARTS = ("clusters", "vectors", "lists", "entities")


def settings_of(parts: Sequence[str], vectors: Path | None, folder: Path) -> dict[str, Any]:
    """Overrides of the config.

    vectors: A pipeline whose vectors are used. folder: Where GloVe and lists are written to.
    """
    settings: dict[str, Any] = {}
    if "clusters" in parts:
        settings[f"{FEATURES}clusters"] = [4, 6, 10, 0]
    if "vectors" in parts:
        vectors = folder / "glove"
        write_glove(vectors)
    if vectors is not None:
        settings |= {"paths.vectors": str(vectors), f"{FEATURES}vectors": 255}
    if "lists" in parts:
        write_lists("en", folder / "lists")
        settings[f"{FEATURES}gazetteers"] = {"lists": str(folder / "lists")}
    if "entities" in parts:
        settings[f"{FEATURES}gazetteer_from_entities"] = True
    return settings


def trained(
    documents: Sequence[Document], parts: Sequence[str], vectors: Path | None, steps: int
) -> Language:
    """configs/ner.cfg after a fixed number of steps: nothing is chosen by score."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "train.spacy"
        write_docs(data, documents)
        overrides = {"paths.train": str(data), "paths.dev": str(data)}  # the reader wants both
        overrides |= settings_of(parts, vectors, folder) | {"components.treecrf.model.threads": 1}
        config = util.load_config(CONFIGS / "ner.cfg", overrides=overrides, interpolate=True)
        nlp = init_nlp(config)
        corpora = util.registry.resolve({"corpora": config["corpora"]})["corpora"]
        examples = list(corpora["train"](nlp))
        for _ in range(steps):
            nlp.update(examples)
    return nlp


def scores_of(nlp: Language, documents: Sequence[Document]) -> dict[str, Any]:
    """F1 and -log P per token of both views, in all ways to label."""
    pipe = nlp.get_pipe("treecrf")
    assert isinstance(pipe, TreeCRF)
    found: dict[str, Any] = {}
    for name, way in WAYS.items():
        pipe.agreement, pipe.parallels, pipe.expected_f1 = way
        for view in ("sentences", "text"):
            gold = docs_of(nlp.vocab, documents, entities=True)
            plain = docs_of(nlp.vocab, documents)
            if view == "text":
                plain = [Doc(nlp.vocab, words=document.words) for document in documents]
            pairs = zip(plain, gold, strict=True)
            scores = nlp.evaluate([Example(doc, reference) for doc, reference in pairs])
            found[f"{view}_{name}"] = {
                "f1": 100 * scores["ents_f"],
                "nll": scores["treecrf_nll"],
                "ece": 100 * scores["treecrf_ece"],
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--documents", type=int, help="how many to train on; by default all")
    parser.add_argument("--fold", choices=FOLDS, default="last", help="which documents to hold out")
    parser.add_argument("--earlier", action="store_true", help="learn from earlier documents alone")
    parser.add_argument("--own-vectors", type=Path, help="a pipeline that has them")
    parser.add_argument("--test", action="store_true", help="all of eng.train, testa")
    parser.add_argument("--quick", action="store_true", help="60 documents, few rounds")
    options = parser.parse_args()
    if options.earlier and options.fold == "first":
        parser.error("there are no documents before the first ones; use another --fold")
    if options.own_vectors and "vectors" in options.parts:
        parser.error("--own-vectors take the place of GloVe; use --parts without vectors")
    documents = read_conll2003("eng.train")
    first = FOLDS[options.fold]
    past = first + HELD_OUT
    later = [] if options.earlier else documents[past:]
    training, test = documents[:first] + later, documents[first:past]
    if options.test:
        training, test = documents, read_conll2003("eng.testa")
    limit = QUICK_DOCUMENTS if options.quick else options.documents
    training = training[-limit:] if limit else training
    steps = QUICK_STEPS if options.quick else STEPS
    own = options.own_vectors
    nlp, times = cpu_timed(lambda: trained(training, options.parts, own, steps))
    size = {"documents": len(training), "test_documents": len(test)}
    parts = " + ".join(["config", *options.parts, *(["own vectors"] if own else [])])
    report("entities", parts=parts, **scores_of(nlp, test), **size, **times)


if __name__ == "__main__":
    main()
