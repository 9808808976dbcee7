"""Spoiled spans of CoNLL-2003 that an audit ranks first, beside the order of P(annotation)."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_treecrf.audit.auditing import audit_data
from spacy_treecrf.audit.column_corpus import DOCUMENT_START, ColumnCorpus
from spacy_treecrf.audit.cross_fitting import Plan
from spacy_treecrf.audit.findings import Audit, Finding
from spacy_treecrf.corpora.conll import read_conll2003
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import conll_spans, spelled

from corpora import corpus
from timing import cpu_timed, report

SPOILED = 0.03  # of the spans
LISTED = 0.05  # of the spans: how far down the list a person reads
KINDS = ("type", "boundary", "dropped")
QUICK_DOCUMENTS = 150


@dataclass(frozen=True)
class Error:
    """A spoiled span: what it was, and what stands there now (None: nothing)."""

    sequence: int
    was: TokenSpan
    now: TokenSpan | None
    kind: str

    def found_by(self, finding: Finding) -> bool:
        if finding.sequence != self.sequence:
            return False
        if self.now is not None:
            return self.now in finding.annotated
        return finding.start < self.was[1] and self.was[0] < finding.end


def spoil(
    sentences: Sequence[LabelledSequence], seed: int
) -> tuple[list[list[TokenSpan]], list[Error]]:
    """The spans of each sentence with errors at random, and these errors."""
    random = np.random.default_rng(seed)
    spans = [conll_spans(sentence.labels["ner"]) for sentence in sentences]
    types = sorted({name for own in spans for _, _, name in own})
    spoiled: list[list[TokenSpan]] = []
    errors: list[Error] = []
    for s, own in enumerate(spans):
        written: list[TokenSpan | None] = list(own)
        for i, span in enumerate(own):
            if random.random() >= SPOILED:
                continue
            kind = KINDS[random.integers(len(KINDS))]
            others = [one for j, one in enumerate(written) if j != i and one is not None]
            choices = changes(kind, span, others, types, len(sentences[s].words))
            if choices:
                written[i] = choices[random.integers(len(choices))]
                errors.append(Error(s, span, written[i], kind))
        spoiled.append([one for one in written if one is not None])
    return spoiled, errors


def changes(
    kind: str, span: TokenSpan, others: Sequence[TokenSpan], types: Sequence[str], length: int
) -> list[TokenSpan | None]:
    """What a span may become by an error of a kind."""
    start, end, name = span
    if kind == "dropped":
        return [None]
    if kind == "type":
        return [(start, end, other) for other in types if other != name]
    taken = {t for a, b, _ in others for t in range(a, b)}
    moved = [(start - 1, end), (start + 1, end), (start, end - 1), (start, end + 1)]
    return [
        (a, b, name)
        for a, b in moved
        if 0 <= a < b <= length and not taken.intersection(range(a, b))
    ]


def write_corpus(
    path: Path, sentences: Sequence[LabelledSequence], spans: Sequence[Sequence[TokenSpan]]
) -> None:
    """A column file with words, tags, chunks and entities, and with its documents."""
    lines = []
    document = None
    for sentence, own in zip(sentences, spans, strict=True):
        if sentence.document != document:
            document = sentence.document
            lines += [f"{DOCUMENT_START}\t-X-\tO\tO", ""]
        labels = spelled(own, len(sentence.words), "BIO")
        columns = (sentence.words, sentence.labels["tag"], sentence.labels["chunk"], labels)
        lines += ["\t".join(row) for row in zip(*columns, strict=True)]
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def shares(errors: Sequence[Error], findings: Sequence[Finding]) -> dict[str, Any]:
    """The share of the errors that these findings are about, in all and by kind."""
    by_sequence: dict[int, list[Finding]] = {}
    for finding in findings:
        by_sequence.setdefault(finding.sequence, []).append(finding)
    found = [e for e in errors if any(map(e.found_by, by_sequence.get(e.sequence, ())))]
    right, every = (Counter(error.kind for error in group) for group in (found, errors))
    kinds = {kind: right[kind] / every[kind] for kind in KINDS if every[kind]}
    return {"all": len(found) / len(errors), **kinds}


def run(
    sentences: Sequence[LabelledSequence], seed: int, plan: Plan
) -> tuple[Audit, list[Error], dict[str, float]]:
    spans, errors = spoil(sentences, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoiled.conll"
        write_corpus(path, sentences, spans)

        def audit() -> Audit:
            column_corpus = ColumnCorpus.read(path, "utf-8")
            return audit_data(column_corpus.labelled(Settings(), None), Settings(), plan)

        result, times = cpu_timed(audit)
    return result, errors, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="150 documents")
    parser.add_argument("--part", default="eng.train", help="file of CoNLL-2003")
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors")
    parser.add_argument("--folds", type=int, default=Plan.folds, help="parts of the corpus")
    parser.add_argument("--members", type=int, default=3, help="models for a fold")
    parser.add_argument(
        "--apart", action="store_true", help="sentences are dealt out, not documents"
    )
    parser.add_argument("--documents", type=int, help="the first documents of the part alone")
    options = parser.parse_args()
    sentences = read_conll2003(corpus("conll2003", options.part))
    most = QUICK_DOCUMENTS if options.quick else options.documents
    if most is not None:
        sentences = [one for one in sentences if (one.document or 0) < most]
    plan = Plan(options.folds, options.members, together=not options.apart)
    audit, errors, times = run(sentences, options.seed, plan)
    n = int(LISTED * len(audit.judged))
    # What a single model's probability of the annotation would list first.
    by_probability = sorted(audit.findings, key=lambda one: one.probability)
    report(
        "audit",
        part=options.part,
        seed=options.seed,
        spans=len(audit.judged),
        spoiled=len(errors),
        listed=n,
        folds=options.folds,
        members=options.members,
        apart=options.apart,
        found=shares(errors, audit.findings[:n]),
        found_by_probability=shares(errors, by_probability[:n]),
        found_anywhere=shares(errors, audit.findings)["all"],
        **times,
    )


if __name__ == "__main__":
    main()
