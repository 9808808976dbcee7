"""Use on other text than training's, of a pipe: configs/ner.cfg on WNUT-17, and cross-calibrated.

    TREECRF_CORPORA=DIR python benchmarks/bench_pipe_domains.py --parts clusters

Training is on tweets and the test on comments of another kind. The pipe is measured as it was
trained, with the `expected_f1` of the config and by best labels; then calibrated by folds of the
tweets, and by folds whose names are new, with the F1 that these let it expect, as
`spacy-treecrf cross-calibrate --for-f1` does. --choose learns from nine tenths of the tweets and
tests on the last tenth instead.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from bench_entities import EXPECTED_F1, PARTS, QUICK_STEPS, STEPS, trained
from spacy.language import Language
from spacy.training import Example

from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

from corpora import Document, read_wnut17
from spacy_data import docs_of, write_docs
from timing import cpu_timed, report

HELD_OUT = 10  # the last of so many parts of the tweets is where choices are made
QUICK_DOCUMENTS = 400


def examples_of(nlp: Language, documents: list[Document]) -> list[Example]:
    gold = docs_of(nlp.vocab, documents, entities=True)
    plain = docs_of(nlp.vocab, documents)
    return [Example(doc, reference) for doc, reference in zip(plain, gold, strict=True)]


def scores_of(nlp: Language, documents: list[Document]) -> dict[str, float]:
    scores = nlp.evaluate(examples_of(nlp, documents))
    names = {"f1": "ents_f", "precision": "ents_p", "recall": "ents_r", "ece": "treecrf_ece"}
    found = {name: 100 * scores[key] for name, key in names.items()}
    return found | {"nll": scores["treecrf_nll"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=["clusters"])
    parser.add_argument("--choose", action="store_true", help="look at training data alone")
    parser.add_argument("--quick", action="store_true", help="400 tweets, few rounds")
    options = parser.parse_args()
    train, test = read_wnut17("wnut17train.conll"), read_wnut17("emerging.dev.conll")
    if options.choose:
        n = len(train) - len(train) // HELD_OUT
        train, test = train[:n], train[n:]
    if options.quick:
        train, test = train[:QUICK_DOCUMENTS], test[:QUICK_DOCUMENTS]
    steps = QUICK_STEPS if options.quick else STEPS
    nlp, times = cpu_timed(lambda: trained(train, options.parts, steps))
    pipe = nlp.get_pipe("treecrf")
    assert isinstance(pipe, TreeCRF)
    model = pipe.shim.trained

    def say(how: str, expected_f1: float, times: dict[str, float]) -> None:
        pipe.expected_f1 = expected_f1
        size: dict[str, Any] = {"parts": " + ".join(options.parts), "expected_f1": expected_f1}
        report("pipe_domains", calibrated=how, **size, **scores_of(nlp, test), **times)

    say("no", EXPECTED_F1, times)
    say("no", 0.0, times)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "train.spacy")
        write_docs(file, train)
        examples = list(PipelineTagger(nlp, pipe, "the pipeline").examples(str(file), "train"))
    for how, new_names in (("by tweets", False), ("by new names", True)):
        pipe.shim.learned = model
        found, more = cpu_timed(partial(pipe.cross_calibrate, examples, new_names=new_names))
        assert found.expected_f1 is not None
        say(how, 0.0, more)
        say(how, found.expected_f1, more)


if __name__ == "__main__":
    main()
