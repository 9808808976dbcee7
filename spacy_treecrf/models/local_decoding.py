"""How a locally normalised model presents itself: joint scores and a free chain, or a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.beam_search import Beams
from spacy_treecrf.engine.chain import Chain, Mask
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.history import reversal, turned_round
from spacy_treecrf.engine.local import (
    LocalScorer,
    turned_beams,
    turned_chain,
    turned_scores,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.local_settings import LocalSettings

# Of sequences as the model reads them: the rows its trees see, and what is added to their scores.
Inputs = tuple[Sequences, "npt.NDArray[np.float32] | None"]
LEAST_PROBABILITY = 1e-9  # of a label that a search presents


@dataclass(frozen=True)
class LocalDecoder:
    """A scorer with the settings it is decoded by.

    see: makes the inputs of the scorer out of sequences in reading order.
    """

    scorer: LocalScorer
    settings: LocalSettings
    masks: Masks
    see: Callable[[Sequences, Workers], Inputs]

    @property
    def width(self) -> int:
        return self.settings.width(self.scorer.history.n_labels)

    @property
    def chain(self) -> Chain:
        """Of no order where labels are searched for: the search has seen to transitions."""
        return Chain(0 if self.width else self.settings.order, *self.masks)

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """log P(y | context, x) of every context; of a search, log P(y) as far as it knows it."""
        if self.width:
            nodes = self.beams(data, workers).nodes
            return np.log(np.maximum(nodes, LEAST_PROBABILITY)).astype(np.float32)[:, None, :]
        seen, extra = self.see(self._in_reading_order(data), workers)
        scores = self.scorer.joint(seen, extra, workers)
        if self.settings.right_to_left:
            return turned_scores(scores, data.offsets, self.settings.order)
        return scores

    def search(self, data: Sequences, workers: Workers, allowed: Mask | None) -> Beams | None:
        """None: decoding is exact."""
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
