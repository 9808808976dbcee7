"""The loss that training shows: a mean over steps, which does not grow with their number."""

from __future__ import annotations


class MeanLoss:
    """The mean loss of the steps since a dict of losses was begun.

    spaCy's components add up the losses of all steps between two evaluations. Ours is one per
    token, and a sum over 200 small batches, after one over a single batch, would seem to rise.
    """

    def __init__(self) -> None:
        self._shown = 0.0  # what was returned last
        self._of_steps = 0.0  # sum over the steps that are over
        self._steps = 0
        self._of_step = 0.0  # of the step that goes on
        self._goes_on = False  # whether that has begun

    def after(self, shown: float, loss: float) -> float:
        """The value to show after another update. shown: the one that stands there now."""
        if shown != self._shown or not shown:  # another dict, or a new one
            self._of_steps, self._steps, self._of_step = 0.0, 0, shown
        self._of_step += loss
        self._goes_on = True
        self._shown = (self._of_steps + self._of_step) / (self._steps + 1)
        return self._shown

    def end_step(self) -> None:
        if self._goes_on:
            self._of_steps += self._of_step
            self._steps += 1
        self._of_step, self._goes_on = 0.0, False
