"""A spaCy pipeline that annotates batches, and what is told of the docs that come out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.columnar.model import model_file
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.pipeline.confidence import span_probability, token_probabilities
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.serve.batching import Answer, Input
from spacy_treecrf.serve.refusals import Refusal
from spacy_treecrf.serve.schemas import MAX_POSITIONS, MAX_TRIED, ExplainRequest
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
            self.pipe.explain(doc, [0], effects=1)

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
        text = doc.text
        words = [token.text for token in doc]
        offsets = [
            (token.idx, token.idx + len(word)) for token, word in zip(doc, words, strict=True)
        ]
        labels = self.pipe.task.gold(Example(doc, doc))
        if self.has_spans:
            labels = [label or "O" for label in labels]
        known = token_probabilities(doc) if len(doc) else np.empty(0, np.float32)
        told: Answer = {
            "text": text,
            "tokens": words,
            "offsets": offsets,
            "labels": labels,
            "probabilities": self._told(known),
            "spans": self._spans(doc, text, offsets, labels) if self.has_spans else [],
        }
        if nbest:
            found = self.pipe.nbest(doc, nbest) if len(doc) else []
            told["nbest"] = [
                {"labels": best, "probability": round(p, DECIMALS)} for best, p in found
            ]
        if marginals:
            told["marginals"] = self._marginals(doc) if len(doc) else []
        return told

    def _told(self, known: npt.NDArray[np.float32] | None) -> list[float] | None:
        return _rounded(known) if known is not None and self.pipe.probabilities else None

    def explain(self, doc: Doc, wanted: ExplainRequest) -> Answer:
        """The doc as a SequenceExplanation, with the tokens that are wanted."""
        for i, position in enumerate(wanted.positions or ()):
            if position >= len(doc):
                field = f"positions.{i}"
                reason = f"{field}: there is no token {position}, the text has {len(doc)}"
                raise Refusal(400, reason, field)
        for field in ("label", "against"):
            value = getattr(wanted, field)
            if value is not None and value not in self.pipe.sequence_labels:
                names = ", ".join(self.pipe.sequence_labels)
                raise Refusal(400, f"{field}: {value} is no label; there are {names}", field)
        positions = self._positions(doc, wanted)
        n_positions = len(doc) if positions is None else len(positions)
        n_tried = len(doc) * len(wanted.words) * n_positions
        if n_tried > MAX_TRIED:
            reason = f"words: they make {n_tried} tokens to label, more than {MAX_TRIED}"
            raise Refusal(400, f"{reason}; pass fewer words or positions", "words")
        explanation = self.pipe.explain(
            doc,
            positions,
            label=wanted.label,
            against=wanted.against,
            interactions=wanted.interactions,
            effects=wanted.effects,
            words=wanted.words,
            nbest=wanted.nbest,
        )
        told: Answer = explanation.to_dict()
        return told

    def _positions(self, doc: Doc, wanted: ExplainRequest) -> list[int] | None:
        """The tokens to explain, of which there are few. None: the pipe chooses."""
        if wanted.positions is not None:
            return sorted(set(wanted.positions))
        if len(doc) <= MAX_POSITIONS:
            return None
        positions = list(range(len(doc)))
        if self.has_spans:
            ((labels, _),) = self.pipe.nbest(doc, 1)
            positions = [i for first, after, _ in biluo_spans(labels) for i in range(first, after)]
        if len(positions) > MAX_POSITIONS:
            reason = f"positions: {len(positions)} tokens would be explained"
            raise Refusal(400, f"{reason}; name at most {MAX_POSITIONS} of them", "positions")
        return positions

    def _spans(
        self, doc: Doc, text: str, offsets: list[tuple[int, int]], labels: Sequence[str | None]
    ) -> list[Answer]:
        told = []
        for first, after, label in biluo_spans(labels):
            start, end = offsets[first][0], offsets[after - 1][1]
            p = span_probability(doc, start, end, label) if self.pipe.probabilities else None
            told.append(
                {
                    "start": start,
                    "end": end,
                    "first_token": first,
                    "last_token": after - 1,
                    "text": text[start:end],
                    "label": label,
                    "probability": None if p is None else round(p, DECIMALS),
                }
            )
        return told

    def _marginals(self, doc: Doc) -> list[dict[str, float]]:
        names = np.array(self.pipe.sequence_labels)
        told = []
        for row in self.pipe.marginals(doc):
            best = np.argsort(-row, kind="stable")
            best = best[row[best] >= SMALLEST]
            told.append(dict(zip(names[best].tolist(), _rounded(row[best]), strict=True)))
        return told


def _rounded(values: npt.NDArray[np.floating[Any]]) -> list[float]:
    rounded: list[float] = values.astype(np.float64).round(DECIMALS).tolist()
    return rounded
