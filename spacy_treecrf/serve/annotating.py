"""A spaCy pipeline that answers batches: what is told of the docs that come out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.columnar.model import model_file
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.pipeline.annotation.confidence import span_probability, token_probabilities
from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.serve.asking import OK, Asked, Input, Reply, Served
from spacy_treecrf.serve.refusals import Refusal
from spacy_treecrf.serve.schemas import MAX_POSITIONS, MAX_TRIED, ExplainRequest
from spacy_treecrf.taggers.loading import load_pipe
from spacy_treecrf.taggers.pipeline_tagger import doc_of_words

SMALLEST = 0.0005  # of the probabilities that marginals tell
DECIMALS = 6
WARM_UP = "Warm up ."

# A zone of spaCy's memory lasts for so many characters: ending it drops what is known of words.
ZONE_CHARACTERS = 1_000_000
# The words of the first texts, of so many characters, stay known: most of them come again, and in
# a zone the tokenizer cuts a word anew whenever it comes.
KEPT_CHARACTERS = 1_000_000

Answer = dict[str, Any]
logger = logging.getLogger("uvicorn.error")


class PipelineAnnotator:
    """A pipeline of which one treecrf pipe is served."""

    def __init__(self, nlp: Language, pipe: TreeCRF, name: str) -> None:
        self.nlp = nlp
        self.pipe = pipe
        self.name = name
        self._zones = _Zones(nlp)
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

    @property
    def served(self) -> Served:
        return Served(
            self.name, self.pipe.name, list(self.pipe.labels), self.has_spans, self.nlp.max_length
        )

    def warm_up(self) -> None:
        """Compile or load what annotation needs, so that the first request does not wait for it."""
        (doc,) = self.annotate([WARM_UP])
        self.tell(doc, nbest=2, marginals=True)
        if self.has_spans and self.pipe.probabilities:
            self.pipe.span_probability(doc[:1], self.pipe.labels[0])
        self.pipe.explain(doc, [0], effects=1)

    def answers(self, asked: Sequence[Asked]) -> list[Reply]:
        self._zones.make_room(sum(one.n_characters for one in asked))
        try:
            docs = self.annotate([one.input for one in asked])
        except Exception:  # of which text, can only be told one by one
            return [self._alone(one) for one in asked]
        return [self._reply(one, doc) for one, doc in zip(asked, docs, strict=True)]

    def resident_bytes(self) -> int | None:
        return 0

    def close(self) -> None:
        self._zones.close()

    def abandon(self) -> None:
        """Nothing: a text that is worked on here can only be left to its thread."""

    def annotate(self, inputs: Sequence[Input]) -> list[Doc]:
        sources = [i if isinstance(i, str) else doc_of_words(self.nlp, i) for i in inputs]
        return list(self.nlp.pipe(sources, batch_size=max(1, len(sources))))

    def _alone(self, asked: Asked) -> Reply:
        try:
            (doc,) = self.annotate([asked.input])
        except Exception as error:
            return Reply.of_refusal(_as_refusal(error))
        return self._reply(asked, doc)

    def _reply(self, asked: Asked, doc: Doc) -> Reply:
        try:
            if asked.kind == "explain":
                told = self.explain(doc, ExplainRequest.model_construct(**asked.options))
            else:
                told = self.tell(doc, **asked.options)
            return Reply(OK, to_json(told), len(doc))
        except Exception as error:
            return Reply.of_refusal(_as_refusal(error), len(doc))

    def tell(self, doc: Doc, nbest: int = 0, marginals: bool = False) -> Answer:
        """The doc as an AnnotatedText."""
        text = doc.text
        offsets = _offsets(doc)
        labels = self.pipe.task.gold(Example(doc, doc))
        if self.has_spans:
            labels = [label or "O" for label in labels]
        known = token_probabilities(doc) if len(doc) else np.empty(0, np.float32)
        told: Answer = {
            "text": text,
            "tokens": [text[start:end] for start, end in offsets],
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


class _Zones:
    """Zones of spaCy's memory, one after the other, after a time without one."""

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        self._open = ExitStack()
        self._left = KEPT_CHARACTERS

    def make_room(self, n_characters: int) -> None:
        """Begin a new zone if the present one has been used up."""
        if self._left <= 0:
            self._open.close()
            self._open.enter_context(self._nlp.memory_zone())
            self._left = ZONE_CHARACTERS
        self._left -= n_characters

    def close(self) -> None:
        self._open.close()


def _as_refusal(error: Exception) -> Refusal:
    """The refusal that tells of an error; mistakes of the server's own are told in its log."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ValueError) and str(error).startswith("treecrf: "):
        return Refusal(400, str(error).removeprefix("treecrf: "))
    logger.error("treecrf: a text could not be annotated", exc_info=error)
    return Refusal(500, f"the text could not be annotated ({type(error).__name__})")


def _offsets(doc: Doc) -> list[tuple[int, int]]:
    """The first character of each token, and the one behind its last."""
    places = doc.to_array(["IDX", "LENGTH"])  # a loop over tokens would be several times slower
    return [(start, start + length) for start, length in places.tolist()]


def _rounded(values: npt.NDArray[np.floating[Any]]) -> list[float]:
    rounded: list[float] = values.astype(np.float64).round(DECIMALS).tolist()
    return rounded
