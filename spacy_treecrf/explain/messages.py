"""Messages of a chain: what the rows before and after a position say of its label.

They are those of forward-backward in log space, kept for all positions of one sequence, so that a
position's probabilities follow at once from other scores of that position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Views:
    """Probabilities of a position's labels from parts of the sequence. shapes: (n_labels,)"""

    alone: Doubles
    left: Doubles
    right: Doubles
    both: Doubles


class Messages:
    """The messages of one sequence. scores: (length, 1 or n_contexts, n_labels)

    Context c packs the previous labels as in `chain`; only the first n_labels**min(t, order) occur
    at position t.
    """

    def __init__(self, scores: Floats, chain: Chain) -> None:
        self.scores = scores
        self.order, self._moves, self._end = chain.steps
        self.n_labels = chain.n_labels

    @property
    def length(self) -> int:
        return len(self.scores)

    def n_live(self, t: int) -> int:
        """How many contexts occur at position t."""
        return int(self.n_labels ** min(t, self.order))

    def scores_at(self, t: int) -> Doubles:
        """The scores of labels after the contexts that occur. shape: (1 or n_live, n_labels)"""
        return self.scores[t, : self.n_live(t)].astype(np.float64)

    @cached
    def before(self) -> list[Doubles]:
        """What rows before t say of each context, up to a constant. shapes: (n_live,)"""
        found = [np.zeros(1)]
        stride = self.n_labels ** max(0, self.order - 1)
        for t in range(self.length - 1):
            if self.order == 0:
                found.append(np.zeros(1))
                continue
            joint = found[-1][:, None] + self.scores_at(t) + self._moves_at(t)
            if len(joint) > stride:  # the oldest label leaves the context
                joint = _log_sum(joint.reshape(-1, stride, self.n_labels), 0)
            after = joint.reshape(-1)
            top = after.max()
            found.append(after - top if top > -np.inf else after)
        return found

    @cached
    def after(self) -> list[Doubles]:
        """What rows after t say of its label y and of the labels before it, up to a constant.

        shapes: (n_other, n_labels), where context c belongs to row c % n_other.
        """
        found = [self._end[None, :]]
        stride = self.n_labels ** max(0, self.order - 1)
        for t in range(self.length - 1, 0, -1):
            if self.order == 0:
                found.append(found[-1])
                continue
            joint = self.scores_at(t) + self._moves_at(t) + self._after_contexts(found[-1], t)
            beta = _log_sum(joint, 1)
            top = beta.max()
            beta = beta - top if top > -np.inf else beta
            found.append(beta.reshape(min(self.n_live(t - 1), stride), self.n_labels))
        return found[::-1]

    def views(self, t: int) -> Views:
        """What parts of the sequence say of the label at position t.

        Labels of rows that a part leaves out are equally likely, and transitions from them and to
        them do not count.
        """
        own = np.broadcast_to(self.scores_at(t), (self.n_live(t), self.n_labels))
        left = self.before[t][:, None] + self._moves_at(t)
        right = self._after_contexts(self.after[t], t)
        return Views(
            alone=_normalised(_log_sum(own, 0)),
            left=_normalised(_log_sum(own + left, 0)),
            right=_normalised(_log_sum(own + right, 0)),
            both=_normalised(_log_sum(own + left + right, 0)),
        )

    def probabilities(self, t: int, scores: Floats) -> Doubles:
        """P(label at t) under other scores of this position, of several sorts. (n, n_labels)

        scores: (n, 1 or n_contexts, n_labels)
        """
        context = self.before[t][:, None] + self._moves_at(t)
        context = context + self._after_contexts(self.after[t], t)
        joint = scores[:, : self.n_live(t)].astype(np.float64) + context
        return _normalised(_log_sum(joint, 1))

    def _moves_at(self, t: int) -> Doubles:
        """Transitions from each context to each label. shape: (1 or n_live, n_labels)"""
        if t == 0 or self.order == 0:
            return self._moves[self.n_labels :]
        n_live = self.n_live(t)
        return np.tile(self._moves[: self.n_labels], (n_live // self.n_labels, 1))

    def _after_contexts(self, after: Doubles, t: int) -> Doubles:
        """What comes after, for each context at t. shape: (1 or n_live, n_labels)"""
        return after if len(after) == 1 else np.tile(after, (self.n_live(t) // len(after), 1))


def _log_sum(values: Doubles, axis: int) -> Doubles:
    """log(sum(exp(values))) along an axis; -inf where nothing is possible."""
    if values.shape[axis] == 1:
        return values.squeeze(axis)
    top = values.max(axis=axis, keepdims=True)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - top).sum(axis=axis))
    found: Doubles = total + top.squeeze(axis)
    return found


def _normalised(logs: Doubles) -> Doubles:
    """Probabilities from their logarithms, along the last axis; 0 where nothing is possible."""
    top = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(top > -np.inf, top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    found: Doubles = weights / np.where(total > 0.0, total, 1.0)
    return found
