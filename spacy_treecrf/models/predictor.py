"""The one way from a model to labels, marginals, n-best lists and probabilities of spans.

Estimators, the pipe, taggers and evaluation all use it: a model scores the rows of some sequences
once, and everything else follows from these scores and the chain over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import allowed_labels
from spacy_treecrf.engine.chain.chain import Mask, log_probability_of
from spacy_treecrf.engine.chain.entropy import sequence_entropies
from spacy_treecrf.engine.chain.nbest import nbest
from spacy_treecrf.engine.chain.prediction import (
    edge_marginals,
    predict_labels,
    predict_marginals,
)
from spacy_treecrf.engine.chain.span_choice import SpanLabels, choose_spans
from spacy_treecrf.engine.chain.span_probability import (
    label_and_span_probabilities,
    span_probabilities,
)
from spacy_treecrf.engine.sequences import Sequences, cut_sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.ruled import Rules, ruled_chain, rules_of
from spacy_treecrf.models.scored_blocks import (
    Block,
    Evidence,
    blocks,
    joined,
    most_rows,
    scored_block,
)

# Label sequences (m, length), the best first, and their log probabilities (m,)
Best = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]


class Predictor:
    """A model, the threads that apply it, and which labels it prefers.

    predictor: "viterbi" (the best sequence) or "marginal" (the best label of each position); by
    default that of the model's settings. rules: What labellings follow; by default those of the
    model's settings, () is none.
    """

    def __init__(
        self,
        model: SequenceModel,
        workers: Workers,
        predictor: str | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.model = model
        self.workers = workers
        self.predictor = predictor or model.settings.predictor
        self.ruled = ruled_chain(model, rules_of(model.settings) if rules is None else rules)

    def apply(self, data: Sequences, allowed: Mask | None = None) -> ScoredSequences:
        """Score sequences. allowed: uint8 (n_rows, n_labels), 0 where a label is ruled out."""
        return ScoredSequences(self, data, allowed)

    def apply_at_first(self, data: Sequences) -> ScoredSequences:
        """What `apply` returns; few rows get scores and labels without compiled kernels."""
        first = self.model.first_rows
        if first is not None and self.ruled is None and self.predictor == "viterbi":
            found = first.find(data.feature_ids, data.numeric, data.offsets)
            if found is not None:
                return _KnownSequences(self, data, *found, np.empty((0, 0)))
        return self.apply(data)

    def apply_quickly(self, data: Sequences, marginals: bool) -> ScoredSequences:
        """What `apply` returns; few rows get scores, labels and marginals by one kernel.

        marginals: Whether these will be asked for.
        """
        quick = self.model.quick_rows
        if quick is not None and self.ruled is None and self.predictor == "viterbi":
            found = quick.find(data.feature_ids, data.numeric, data.offsets, marginals)
            if found is not None:
                return _KnownSequences(self, data, *found)
        return self.apply(data)

    @property
    def chooses_spans(self) -> bool:
        """Whether spans that serve F1 best are found: of exact BILUO labels, without rules."""
        chain = self.model.chain
        return self.obeys("biluo") and chain.order <= 1 and not chain.pruned and self.ruled is None

    def obeys(self, constraints: str) -> bool:
        """Whether predicted labels always follow these hard constraints."""
        exact = self.predictor == "viterbi" and not self.model.searches
        return exact and self.model.settings.constraints == constraints

    def without_rules(self) -> Predictor:
        return (
            self if self.ruled is None else Predictor(self.model, self.workers, self.predictor, ())
        )

    def uncurved(self) -> Predictor:
        """The same without the temperature curve of its model, if that has one."""
        twin = copy(self)
        twin.model = self.model.uncurved
        return twin

    def scores(self, data: Sequences) -> npt.NDArray[np.float32]:
        return self.apply(data).scores

    def labels(self, data: Sequences) -> npt.NDArray[np.int32]:
        return self.apply(data).labels()

    def marginals(self, data: Sequences) -> npt.NDArray[np.float64]:
        return self.apply(data).marginals()

    def nbest(self, data: Sequences, n: int) -> list[Best]:
        return self.apply(data).nbest(n)


class ScoredSequences:
    """Sequences under a model; what is asked for is computed once.

    Scores that take more than BLOCK_BYTES are made block by block, anew for each question, and
    never stand in memory together. It is to be used while the workers of its predictor are there.
    """

    def __init__(self, predictor: Predictor, data: Sequences, allowed: Mask | None = None) -> None:
        self.data = data
        self.chain = predictor.model.chain
        self.ruled = predictor.ruled
        self._predictor = predictor
        self._workers = predictor.workers
        self._masks: tuple[Mask, ...] = () if allowed is None else (allowed,)
        self._evidence: tuple[Evidence, ...] = ()
        self._bounds = blocks(data.offsets, predictor.model.score_bytes)
        self._kept: list[Block] | None = None
        if len(self._bounds) < 2:
            self._kept = [self._scored_block((0, data.n_sequences))]
        self._marginals: npt.NDArray[np.float64] | None = None
        self._labels: npt.NDArray[np.int32] | None = None

    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """Scores of all rows. shape: (n_rows, n_contexts, n_labels)"""
        return joined([block.scores for block in self._blocks()])

    def obeys(self, constraints: str) -> bool:
        """Whether predicted labels always follow these hard constraints."""
        return self._predictor.obeys(constraints)

    @property
    def predicts_single_labels(self) -> bool:
        """Whether labels are the best ones position by position, not the best sequence."""
        return self._predictor.predictor == "marginal"

    def under(self, allowed: Mask) -> ScoredSequences:
        """The same sequences where a mask (n_rows, n_labels) rules labels out."""
        if self._predictor.model.searches:  # what a search finds depends on what it may find
            return ScoredSequences(self._predictor, self.data, allowed)
        twin = copy(self)
        twin._masks = (*self._masks, allowed)
        twin._marginals = twin._labels = None
        if self._kept is not None:
            twin._kept = [block.under(allowed) for block in self._kept]
        return twin

    def with_evidence(self, evidence: Evidence) -> ScoredSequences:
        """The same sequences where evidence (n_rows, n_labels) is added to the scores."""
        if self._predictor.model.searches:
            raise ValueError(
                "treecrf: evidence for labels needs exact inference, and this model searches by "
                "beams; use a boosted CRF or a perceptron"
            )
        twin = copy(self)
        twin._evidence = (*self._evidence, evidence)
        twin._marginals = twin._labels = None
        if self._kept is not None:
            twin._kept = [block.with_evidence(evidence) for block in self._kept]
        return twin

    @property
    def evidence(self) -> Evidence | None:
        """What was added to the model's scores (n_rows, n_labels); None: nothing."""
        return np.sum(self._evidence, axis=0) if self._evidence else None

    def labels(self) -> npt.NDArray[np.int32]:
        """Ids of the predicted labels. shape: (n_rows,)"""
        if self._labels is not None:
            return self._labels
        return joined([self._labels_of(block) for block in self._blocks()])

    def labels_of_spans(self, spans: SpanLabels, threshold: float) -> npt.NDArray[np.int32]:
        """Ids of the labels of the spans that serve F1 best, see `choose_spans`. shape: (n_rows,)

        Those of `labels` where there are rules, or where these are not exact BILUO labels.
        """
        labels = self.labels()
        if not self._predictor.chooses_spans:
            return labels
        chosen = labels.copy()
        for block in self._blocks():
            self._choose_spans(block, spans, threshold, chosen[block.rows])
        return chosen

    def marginals(self) -> npt.NDArray[np.float64]:
        """P(y_t = k). shape: (n_rows, n_labels)"""
        if self._marginals is None:
            self._marginals = joined([self._marginals_of(block) for block in self._blocks()])
        return self._marginals

    def marginals_at(
        self,
        temperature: float,
        *,
        added: npt.NDArray[np.float32] | None = None,
        of_rows: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float64]:
        """P(y_t = k) where all scores are divided by a temperature. shape: (n_rows, n_labels)

        added: What is then added to the scores of each label, at all positions. shape: (n_labels,)
        of_rows: What the scores of each row, but not those of transitions, are divided by besides.
        shape: (n_rows,)
        """
        self._refuse_rules("temperatures")
        chain, t = self.chain.cooled(temperature), np.float32(temperature)
        parts = []
        for block in self._blocks():
            scores = block.scores / t
            if added is not None:
                scores += added
            if of_rows is not None:
                scores /= of_rows[block.rows, None, None]
            parts.append(predict_marginals(scores, block.data, chain, self._workers))
        return joined(parts)

    def pair_marginals(self) -> npt.NDArray[np.float32]:
        """P(y_{t-1} = u, y_t = v); 0 at first positions. shape: (n_rows, n_labels, n_labels)"""
        self._refuse_rules("probabilities of pairs of labels")
        parts = [
            edge_marginals(block.scores, block.data, self.chain, self._workers)
            for block in self._blocks()
        ]
        return joined(parts)

    def probability_of_pairs(self, pairs: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """P(y_{t-1} and y_t are one of some pairs) of each row t; 0 at first positions.

        pairs: (n_labels, n_labels), the label before and the label.
        """
        self._refuse_rules("probabilities of pairs of labels")
        found = np.zeros(self.data.n_rows)
        row_bytes = 4 * pairs.size  # more than scores take
        for block in self._blocks():
            of_block = found[block.rows]
            for chunk in cut_sequences(block.data.offsets, most_rows(row_bytes)):
                part, rows = block.data.part(*chunk), block.data.rows_of(chunk)
                edges = edge_marginals(block.scores[rows], part, self.chain, self._workers)
                of_block[rows] = edges.sum(axis=(1, 2), where=pairs, dtype=np.float64)
        return found

    def lattice(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """Marginals of labels and of pairs, of one distribution: a beam prunes neither."""
        exact = self.unpruned()
        return exact.marginals(), exact.pair_marginals()

    def parts(self) -> Iterator[tuple[slice, ScoredSequences]]:
        """The sequences in parts, whose scores are kept, and the rows of each part."""
        if self._kept is not None:
            yield slice(0, self.data.n_rows), self
            return
        for block in self._blocks():
            part, rows = copy(self), block.rows
            part.data = block.data
            part._kept = [replace(block, rows=slice(0, block.data.n_rows))]
            part._masks = tuple(mask[rows] for mask in self._masks)
            part._evidence = tuple(evidence[rows] for evidence in self._evidence)
            part._marginals = None if self._marginals is None else self._marginals[rows]
            part._labels = None
            yield rows, part

    def unpruned(self) -> ScoredSequences:
        """The same sequences under the chain without its beam, whose marginals are exact."""
        if not self.chain.pruned:
            return self
        twin = copy(self)
        twin.chain, twin._marginals = replace(self.chain, beam=None), None
        return twin

    def nbest(self, n: int) -> list[Best]:
        """The n best label sequences of each sequence, or as many as there are."""
        return [best for block in self._blocks() for best in self._nbest_of(block, n)]

    def span_probabilities(
        self, spans: npt.NDArray[np.int64], labels: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """P(rows first to last - 1 have their labels) of each span (first, last) of rows.

        labels: (n_rows,), of which those inside of spans are read. A beam prunes nothing of them.
        """
        if not len(spans):
            return np.empty(0)
        if self.chain.pruned:
            return self.unpruned().span_probabilities(spans, labels)
        nodes = self.marginals()
        if self.chain.order <= 1 and (spans[:, 1] - spans[:, 0] == 1).all():
            first = spans[:, 0]
            single: npt.NDArray[np.float64] = nodes[first, labels[first]]
            return single
        if self._kept is not None:
            return self._spans_of(self._kept[0], spans, labels)
        found = np.empty(len(spans))
        for block in self._blocks():
            rows = block.rows
            own = (spans[:, 0] >= rows.start) & (spans[:, 0] < rows.stop)
            found[own] = self._spans_of(block, spans[own] - rows.start, labels[rows])
        return found

    def probabilities_of(
        self, labels: npt.NDArray[np.int32], spans: Sequence[tuple[int, int]]
    ) -> tuple[npt.NDArray[np.float64], list[float]]:
        """P(y_t = labels[t]) of all rows, and P(all their labels) of spans (first, last) of rows.

        labels: (n_rows,). spans: sorted, each within a sequence.
        """
        chosen = self.marginals()[np.arange(len(labels)), labels]
        if not spans:
            return chosen, []
        return chosen, self.span_probabilities(np.array(spans), labels).tolist()

    def log_probability_of(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """log P(annotation) of each sequence, -inf where hard constraints or rules forbid it.

        labels: (n_rows,), -1 where a row is not annotated.
        """
        return self.log_probability_within(allowed_labels(labels, self.chain.n_labels))

    def log_probability_within(self, allowed: Mask) -> npt.NDArray[np.float64]:
        """log P(all labels of a sequence are allowed), of each. allowed: (n_rows, n_labels)"""
        parts = []
        for block in self._blocks():
            scores, offsets, own = block.scores, block.data.offsets, allowed[block.rows]
            if self.ruled is None:
                parts.append(log_probability_of(scores, offsets, self.chain, own))
            else:
                parts.append(self.ruled.log_probability_of(scores, offsets, own))
        return joined(parts)

    def entropies(self) -> npt.NDArray[np.float64]:
        """The entropy, in nats, of the labels of each sequence. shape: (n_sequences,)"""
        self._refuse_rules("entropies")
        parts = [
            sequence_entropies(block.scores, block.data.offsets, self.chain)
            for block in self._blocks()
        ]
        return joined(parts)

    def _refuse_rules(self, what: str) -> None:
        if self.ruled is not None:
            raise ValueError(f"treecrf: there are no {what} under rules; set rules to None")

    def _blocks(self) -> Iterator[Block]:
        """All blocks in their order, each with its scores."""
        if self._kept is not None:
            yield from self._kept
            return
        for chunk in self._bounds:
            block = self._scored_block(chunk)
            for evidence in self._evidence:
                block = block.with_evidence(evidence)
            yield block

    def _scored_block(self, chunk: tuple[int, int]) -> Block:
        return scored_block(self._predictor.model, self._workers, self.data, chunk, self._masks)

    def _labels_of(self, block: Block) -> npt.NDArray[np.int32]:
        predictor = self._predictor.predictor
        if block.beams is not None and predictor == "viterbi":
            return block.beams.labels[:, 0]
        if self.ruled is not None:
            offsets = block.data.offsets
            return self.ruled.labels(block.scores, offsets, predictor, self._workers)
        return predict_labels(block.scores, block.data, self.chain, predictor, self._workers)

    def _marginals_of(self, block: Block) -> npt.NDArray[np.float64]:
        if self.ruled is not None:
            return self.ruled.marginals(block.scores, block.data.offsets, self._workers)
        return predict_marginals(block.scores, block.data, self.chain, self._workers)

    def _choose_spans(
        self, block: Block, spans: SpanLabels, threshold: float, labels: npt.NDArray[np.int32]
    ) -> None:
        """Write the labels of the best spans of a block over its most probable ones."""
        rows = block.scores, block.data.offsets, self.marginals()[block.rows]
        moves = self.chain.scaled_moves.factors, self.chain.steps.end
        self._workers.map(
            lambda chunk: choose_spans(rows, chunk, moves, spans, threshold, labels),
            block.data.chunks,
        )

    def _spans_of(
        self, block: Block, spans: npt.NDArray[np.int64], labels: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Probabilities of spans of a block, whose rows and labels are those of the block."""
        offsets = block.data.offsets
        if self.ruled is not None:
            return self.ruled.span_probabilities(block.scores, offsets, spans, labels)
        nodes = self.marginals()[block.rows]
        return span_probabilities(block.scores, offsets, self.chain, nodes, spans, labels)

    def _nbest_of(self, block: Block, n: int) -> list[Best]:
        bounds = list(pairwise(block.data.offsets.tolist()))
        ruled = self.ruled
        if ruled is not None:
            return self._workers.map(lambda b: ruled.nbest(block.scores[b[0] : b[1]], n), bounds)
        if block.beams is None:
            return self._workers.map(
                lambda b: nbest(block.scores[b[0] : b[1]], self.chain, n), bounds
            )
        kept = np.minimum(block.beams.counts, n)
        return [
            (np.ascontiguousarray(block.beams.labels[a:b, :m].T), log_p[:m])
            for (a, b), m, log_p in zip(bounds, kept, block.beams.log_p, strict=True)
        ]


class _KnownSequences(ScoredSequences):
    """Sequences whose scores, labels and perhaps marginals are known.

    nodes: Marginals (n_rows, n_labels), or empty if they are not known.
    """

    def __init__(
        self,
        predictor: Predictor,
        data: Sequences,
        scores: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int32],
        nodes: npt.NDArray[np.float64],
    ) -> None:
        self.data = data
        self.chain = predictor.model.chain
        self.ruled = None  # nothing is known in advance where there are rules
        self._predictor = predictor
        self._workers = predictor.workers
        self._masks = ()
        self._evidence = ()
        self._kept = [Block(slice(0, len(labels)), data, None, scores)]
        self._marginals = nodes if len(nodes) else None
        self._labels = labels

    def _choose_spans(
        self, block: Block, spans: SpanLabels, threshold: float, labels: npt.NDArray[np.int32]
    ) -> None:
        """Do the same in this thread: there are few rows."""
        rows = block.scores, block.data.offsets, self.marginals()
        moves = self.chain.scaled_moves.factors, self.chain.steps.end
        choose_spans(rows, (0, block.data.n_sequences), moves, spans, threshold, labels)

    def probabilities_of(
        self, labels: npt.NDArray[np.int32], spans: Sequence[tuple[int, int]]
    ) -> tuple[npt.NDArray[np.float64], list[float]]:
        """The same by one kernel, where marginals are known."""
        chain = self.chain
        if self._marginals is None or chain.order > 1 or self._kept is None:
            return super().probabilities_of(labels, spans)
        rows = self._kept[0].scores, self.data.offsets, self._marginals, labels
        of_labels, of_spans = np.empty(len(labels)), np.empty(len(spans))
        where = np.array(spans, np.int64).reshape(-1, 2)
        edges, end = chain.scaled_moves.factors, chain.steps.end
        if label_and_span_probabilities(rows, edges, end, where, of_labels, of_spans):
            return super().probabilities_of(labels, spans)
        return of_labels, of_spans.tolist()
