"""A chain under rules: labels, marginals, n-best lists and spans, given that the rules hold.

All probabilities are conditional on the rules: those of labellings that break one are 0, and the
others sum to 1. They are exact where all states fit (`graph.EXACT_MOVES`, `EXACT_CELLS`), else
they are those of the labellings inside a beam. A sequence of which no labelling follows the rules,
and the constraints of the chain, is labelled as if there were no rules, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain import chain as chains
from spacy_treecrf.engine.chain.chain import Chain, as_kernel_array
from spacy_treecrf.engine.chain.decoding import marginal_argmax, viterbi
from spacy_treecrf.engine.chain.nbest import nbest as nbest_without_rules
from spacy_treecrf.engine.chain.span_probability import (
    span_probabilities as span_probabilities_without_rules,
)
from spacy_treecrf.engine.limits import check_nbest, check_nbest_labels
from spacy_treecrf.engine.rules.graph import (
    BEAM_STATES,
    EXACT_CELLS,
    Graph,
    beam_states,
    empty_beam,
    fill_beam,
    whole_graph,
)
from spacy_treecrf.engine.rules.graph_kernels import (
    Messages,
    Trellis,
    backward,
    best_labels,
    fill_best,
    forward,
    span_masses,
)
from spacy_treecrf.engine.rules.graph_nbest import best_labellings
from spacy_treecrf.engine.rules.rule import parse_rules
from spacy_treecrf.engine.rules.rule_masks import masks_of
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]

_ALL = np.zeros((0, 0), np.uint8)
WITHOUT_RULES = (
    "treecrf: no labelling of a sequence was found that follows the rules (and the constraints on "
    "transitions); such sequences are labelled without the rules"
)


class RuledChain:
    """A chain and the rules that its labellings follow. labels: by id. rules: as texts.

    It never changes; what is asked of it is asked for sequences with scores of the shape
    (n_rows, 1 or n_contexts, n_labels).
    """

    def __init__(self, chain: Chain, labels: Sequence[str], rules: Sequence[str]) -> None:
        self.chain = chain
        self.rules = tuple(rules)
        self._masks = masks_of(parse_rules(rules), labels)
        self._order = max(1, chain.order)  # rules look at the label before
        self._whole = whole_graph(self._masks, self._order)

    @property
    def n_states(self) -> int:
        """How many states are followed at each position."""
        return BEAM_STATES if self._whole is None else int(self._whole.following.shape[1])

    def is_exact(self, length: int) -> bool:
        """Whether all states of sequences of this length are followed."""
        return self._whole is not None and self.n_states * (length + 1) <= EXACT_CELLS

    def labels(self, scores: Floats, offsets: Ints, predictor: str, workers: Workers) -> Labels:
        """The best labellings, or the best labels one by one. shape: (n_rows,)"""
        if predictor == "marginal":
            return marginal_argmax(self.marginals(scores, offsets, workers))
        found = np.zeros(len(scores), np.int32)

        def write(bounds: tuple[int, int]) -> None:
            rows = slice(*bounds)
            trellis = self._trellis(scores[rows])
            best = self._scratch(trellis)
            if trellis is None or best_labels(trellis, best, found[rows]) == -np.inf:
                _warn()
                found[rows], _ = viterbi(scores[rows], _alone(rows), self.chain)

        workers.map(write, list(pairwise(offsets.tolist())))
        return found

    def marginals(self, scores: Floats, offsets: Ints, workers: Workers) -> Doubles:
        """P(y_t = k). shape: (n_rows, n_labels)"""
        nodes = np.zeros((len(scores), self.chain.n_labels))

        def write(bounds: tuple[int, int]) -> None:
            rows = slice(*bounds)
            if self._infer(scores[rows], nodes[rows]) is None:
                nodes[rows], _ = chains.node_marginals(scores[rows], _alone(rows), self.chain)

        workers.map(write, list(pairwise(offsets.tolist())))
        return nodes

    def nbest(self, scores: Floats, n: int) -> tuple[Labels, Doubles]:
        """The n most probable labellings of one sequence, best first, and their log probabilities.

        Fewer where fewer follow the rules.
        """
        n = check_nbest(n)
        length = len(scores)
        if length == 0:
            return np.zeros((1, 0), np.int32), np.zeros(1)
        n = min(n, self.chain.n_labels ** min(length, 64))
        check_nbest_labels(n, length)
        trellis = self._trellis(scores)
        best = self._scratch(trellis)
        if trellis is None or fill_best(trellis, best) == -np.inf:
            _warn()
            return nbest_without_rules(scores, self.chain, n)
        found, values = np.empty((n, length), np.int32), np.empty(n)
        count = best_labellings(trellis, best, found, values)
        log_z = forward(trellis, _ALL, best)
        return found[:count], values[:count] - log_z

    def span_probabilities(
        self, scores: Floats, offsets: Ints, spans: Ints, labels: Labels
    ) -> Doubles:
        """P(rows first to last - 1 have their labels) for spans (n, 2) of rows.

        labels: (n_rows,), read inside of spans. A span must lie within one sequence.
        """
        found = np.empty(len(spans))
        sequence = np.searchsorted(offsets, spans[:, 0], side="right") - 1
        for s in np.unique(sequence).tolist():
            rows = slice(int(offsets[s]), int(offsets[s + 1]))
            own = sequence == s
            nodes = np.zeros((rows.stop - rows.start, self.chain.n_labels))
            known = self._infer(scores[rows], nodes)
            asked, of_rows = spans[own] - rows.start, as_kernel_array(labels[rows], np.int32)
            if known is None:
                nodes, _ = chains.node_marginals(scores[rows], _alone(rows), self.chain)
                found[own] = span_probabilities_without_rules(
                    scores[rows], _alone(rows), self.chain, nodes, asked, of_rows
                )
                continue
            trellis, messages, log_z = known
            masses = np.empty(len(asked))
            span_masses(trellis, messages, log_z, asked, of_rows, masses)
            found[own] = masses
        return found

    def log_probability_of(self, scores: Floats, offsets: Ints, allowed: Mask) -> Doubles:
        """Log probability that every label of a sequence lies in its position's allowed set."""
        found = np.zeros(len(offsets) - 1)
        for s, (first, last) in enumerate(pairwise(offsets.tolist())):
            rows = slice(first, last)
            of_rows = as_kernel_array(allowed[rows], np.uint8)
            log_z = self._log_sum(scores[rows], _ALL)
            if log_z == -np.inf:
                _warn()
                found[s] = chains.log_probability_of(
                    scores[rows], _alone(rows), self.chain, of_rows
                )[0]
                continue
            # a beam may leave out what it finds where it is told what to look for
            found[s] = min(0.0, self._log_sum(scores[rows], of_rows) - log_z)
        return found

    def _trellis(self, scores: Floats, allowed: Mask = _ALL) -> Trellis | None:
        """The states of a sequence that are followed; None if a beam has met a dead end."""
        scores = as_kernel_array(scores, np.float32)
        steps, length = self.chain.steps, len(scores)
        graph: Graph
        if self._whole is not None and self.is_exact(length):
            graph = self._whole
        else:
            graph = empty_beam(
                length, beam_states(length, self.chain.n_labels), self.chain.n_labels
            )
            if not fill_beam(scores, steps, self._order, self._masks, allowed, graph):
                return None
        return Trellis(scores, steps, graph)

    def _scratch(self, trellis: Trellis | None) -> Doubles:
        """Room for a number for each state before and after each position."""
        if trellis is None:
            return np.empty((0, 0))
        return np.empty((len(trellis.scores) + 1, trellis.graph.following.shape[1]))

    def _infer(self, scores: Floats, nodes: Doubles) -> tuple[Trellis, Messages, float] | None:
        """Fill the marginals of one sequence; None, with a warning, if no labelling is possible."""
        trellis = self._trellis(scores)
        messages = Messages(self._scratch(trellis), self._scratch(trellis))
        if trellis is not None:
            log_z = forward(trellis, _ALL, messages.alpha)
            if log_z > -np.inf:
                backward(trellis, messages, log_z, nodes)
                return trellis, messages, log_z
        _warn()
        return None

    def _log_sum(self, scores: Floats, allowed: Mask) -> float:
        trellis = self._trellis(scores, allowed)
        if trellis is None:
            return -np.inf
        return float(forward(trellis, allowed, self._scratch(trellis)))


def _alone(rows: slice) -> Ints:
    """The offsets of one sequence by itself."""
    return np.array([0, rows.stop - rows.start], np.int64)


def _warn() -> None:
    warnings.warn(WITHOUT_RULES, stacklevel=2)
