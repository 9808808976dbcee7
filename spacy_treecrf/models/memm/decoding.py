"""Decoding of MEMMs: exact joint scores under a chain without scores of its own, or beam search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain, Mask
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.memm.beam_search import Beams
from spacy_treecrf.engine.memm.label_history import reversal, turned_round
from spacy_treecrf.engine.memm.memm_scoring import (
    LocalScorer,
    turned_beams,
    turned_chain,
    turned_scores,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.memm.settings import LocalSettings

# The rows that the trees of a model see, and what is added to their scores.
Inputs = tuple[Sequences, "npt.NDArray[np.float32] | None"]


@dataclass(frozen=True)
class MEMMDecoder:
    """A scorer with the settings that it is decoded by.

    see: A function that makes the inputs of the scorer out of sequences in reading order.
    """

    scorer: LocalScorer
    settings: LocalSettings
    masks: Masks
    see: Callable[[Sequences, Workers], Inputs]

    @property
    def width(self) -> int:
        return self.settings.width(self.scorer.history.n_labels)

    @cached
    def chain(self) -> Chain:
        """A chain of order 0 after a beam search, which has already applied the transitions."""
        return Chain(0 if self.width else self.settings.order, *self.masks)

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """log P(y | context, x) after every context; under beam search, log P(y) in its beams."""
        if self.width:
            return self.beams(data, workers).scores
        seen, extra = self.see(self._in_reading_order(data), workers)
        scores = self.scorer.joint(seen, extra, workers)
        if self.settings.right_to_left:
            return turned_scores(scores, data.offsets, self.settings.order)
        return scores

    def search(self, data: Sequences, workers: Workers, allowed: Mask | None) -> Beams | None:
        """The label sequences that beam search finds; None where decoding is exact."""
        return self.beams(data, workers, allowed) if self.width else None

    def beams(self, data: Sequences, workers: Workers, allowed: Mask | None = None) -> Beams:
        seen, extra = self.see(self._in_reading_order(data), workers)
        chain = Chain(self.settings.order, *self.masks)
        if not self.settings.right_to_left:
            return self.scorer.beams(seen, extra, chain, self.width, workers, allowed)
        if allowed is not None:
            allowed = np.ascontiguousarray(allowed[reversal(data.offsets)])
        beams = self.scorer.beams(seen, extra, turned_chain(chain), self.width, workers, allowed)
        return turned_beams(beams, data.offsets)

    def _in_reading_order(self, data: Sequences) -> Sequences:
        return turned_round(data) if self.settings.right_to_left else data
