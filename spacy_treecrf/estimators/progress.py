"""Progress of a training on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from spacy_treecrf.engine.boosting.rounds import Callback, RoundInfo, kept_line

T = TypeVar("T")


def watched(folds: Sequence[T], verbose: bool) -> Iterator[T]:
    """The folds of a cross-fitting, with a progress bar if it is wanted."""
    from tqdm import tqdm

    return iter(tqdm(folds, unit="fold", disable=not verbose))


class Progress:
    """Passes each round on to the user's callback and, if wanted, to a progress bar."""

    def __init__(self, callback: Callback | None, rounds: int, verbose: bool) -> None:
        self.callback = callback
        # No bar that shows nothing: Python would lose an interrupt in its finalizer.
        self.bar: Any = _new_bar(rounds) if verbose else None
        self._judged: dict[int, RoundInfo] = {}  # rounds with held-out figures

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, info: RoundInfo) -> None:
        if self.bar is not None:
            self._show(info)
        if self.callback:
            self.callback(info)

    def _show(self, info: RoundInfo) -> None:
        shown = {"log-likelihood": f"{info.log_likelihood:.4f}"}
        if info.held_out_accuracy is not None:
            self._judged[info.round] = info
            shown["held-out"] = f"{info.held_out_log_likelihood:.4f}"
            shown["accuracy"] = f"{info.held_out_accuracy:.2%}"
        if info.held_out_f1 is not None:
            shown["F1"] = f"{100 * info.held_out_f1:.1f}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(info.round - self.bar.n)

    def say_kept(self, kept: int) -> None:
        """Show at the end of the bar which round early stopping has chosen."""
        if self.bar is None or not self._judged:
            return
        last = max(self._judged)
        monitor = self._judged[last].monitor
        assert monitor is not None
        best = self._judged.get(kept)
        value = None if best is None else getattr(best, f"held_out_{monitor}")
        self.bar.set_postfix_str(f"{self.bar.postfix}; {kept_line(kept, last, monitor, value)}")


def _new_bar(rounds: int) -> Any:
    from tqdm import tqdm

    return tqdm(total=rounds, unit="round")
