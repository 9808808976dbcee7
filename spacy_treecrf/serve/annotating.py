"""A spaCy pipeline that annotates batches, and what is told of the docs that come out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.columnar.model import model_file
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.serve.batching import Answer, Input
from spacy_treecrf.serve.refusals import Refusal
from spacy_treecrf.taggers.loading import load_pipe
from spacy_treecrf.taggers.pipeline_tagger import doc_of_words

SMALLEST = 0.0005  # of the probabilities that marginals tell
DECIMALS = 6
WARM_UP = "Warm up ."


class PipelineAnnotator:
    """A pipeline of which one treecrf pipe is served."""

    def __init__(self, nlp: Language, pipe: TreeCRF, name: str) -> None:
        self.nlp = nlp
        self.pipe = pipe
        self.name = name
        self.has_spans = pipe.task.constraints == "biluo"
        # The probabilities on a doc are those of the last treecrf pipe.
        names = nlp.pipe_names
        for behind in names[names.index(pipe.name) + 1 :]:
            if isinstance(nlp.get_pipe(behind), TreeCRF):
                nlp.disable_pipe(behind)

    @classmethod
    def load(cls, model: str, pipe: str | None = None, threads: int = 0) -> PipelineAnnotator:
        """The pipeline of this folder or package."""
        if model_file(model).is_file():
            raise ValueError(
                f"treecrf: {model} is no spaCy pipeline, and `serve` needs one to cut texts into "
                "tokens; label column files by `spacy-treecrf tag`, or train a pipeline"
            )
        nlp, found = load_pipe(model, pipe)
        if threads:
            found.shim.recipe = found.shim.recipe.changed(threads=threads)
        return cls(nlp, found, model)

    def warm_up(self) -> None:
        """Compile or load what annotation needs, so that the first request does not wait for it."""
        with self.memory_zone():
            (doc,) = self.annotate([WARM_UP])
            self.tell(doc, nbest=2, marginals=True)
            if self.has_spans and self.pipe.probabilities:
                self.pipe.span_probability(doc[:1], self.pipe.labels[0])

    def memory_zone(self) -> AbstractContextManager[Any]:
        zone: AbstractContextManager[Any] = self.nlp.memory_zone()
        return zone

    def annotate(self, inputs: Sequence[Input]) -> list[Doc]:
        sources = [i if isinstance(i, str) else doc_of_words(self.nlp, i) for i in inputs]
        return list(self.nlp.pipe(sources, batch_size=max(1, len(sources))))

    def check(self, inputs: Sequence[Input], field: str) -> None:
        """Refuse texts that spaCy would refuse for their length."""
        longest = self.nlp.max_length
        for i, text in enumerate(inputs):
            if isinstance(text, str) and len(text) > longest:
                where = f"{field}.{i}" if field == "texts" else field
                reason = f"{where}: the text has {len(text)} characters, more than {longest}"
                raise Refusal(413, reason, where)

    def tell(self, doc: Doc, nbest: int = 0, marginals: bool = False) -> Answer:
        """The doc as an AnnotatedText."""
        labels = self.pipe.task.gold(Example(doc, doc))
        if self.has_spans:
            labels = [label or "O" for label in labels]
        probabilities = doc.user_data.get("treecrf_prob") if self.pipe.probabilities else None
        starts = [token.idx for token in doc]
        words = [token.text for token in doc]
        told: Answer = {
            "text": doc.text,
            "tokens": words,
            "offsets": [(a, a + len(word)) for a, word in zip(starts, words, strict=True)],
            "labels": labels,
            "probabilities": None,
            "spans": self._spans(doc, labels) if self.has_spans else [],
        }
        if probabilities is not None and len(probabilities) == len(doc):
            told["probabilities"] = _rounded(probabilities.tolist())
        if nbest:
            found = self.pipe.nbest(doc, nbest) if len(doc) else []
            told["nbest"] = [
                {"labels": best, "probability": round(p, DECIMALS)} for best, p in found
            ]
        if marginals:
            told["marginals"] = self._marginals(doc)
        return told

    def _spans(self, doc: Doc, labels: Sequence[str | None]) -> list[Answer]:
        told = []
        for start, end, label in biluo_spans(labels):
            span = Span(doc, start, end, label)
            p = span._.treecrf_prob if self.pipe.probabilities else None
            told.append(
                {
                    "start": span.start_char,
                    "end": span.end_char,
                    "first_token": start,
                    "last_token": end - 1,
                    "text": span.text,
                    "label": label,
                    "probability": None if p is None else round(p, DECIMALS),
                }
            )
        return told

    def _marginals(self, doc: Doc) -> list[dict[str, float]]:
        if not len(doc):
            return []
        names = self.pipe.sequence_labels
        told = []
        for row in self.pipe.marginals(doc).tolist():
            kept = [(p, name) for p, name in zip(row, names, strict=True) if p >= SMALLEST]
            told.append({name: round(p, DECIMALS) for p, name in sorted(kept, reverse=True)})
        return told


def _rounded(values: list[float]) -> list[float]:
    return [round(value, DECIMALS) for value in values]
