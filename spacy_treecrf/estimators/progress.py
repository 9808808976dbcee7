"""Progress of a training on the terminal."""

from __future__ import annotations

from tqdm import tqdm

from spacy_treecrf.engine.boosting.rounds import Callback, RoundInfo, kept_line


class Progress:
    """Passes each round on to the user's callback and, if wanted, to a progress bar."""

    def __init__(self, callback: Callback | None, rounds: int, verbose: bool) -> None:
        self.callback = callback
        self.bar = tqdm(total=rounds, unit="round", disable=not verbose)
        self._judged: dict[int, RoundInfo] = {}  # rounds with held-out figures

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def __call__(self, info: RoundInfo) -> None:
        shown = {"log-likelihood": f"{info.log_likelihood:.4f}"}
        if info.held_out_accuracy is not None:
            self._judged[info.round] = info
            shown["held-out"] = f"{info.held_out_log_likelihood:.4f}"
            shown["accuracy"] = f"{info.held_out_accuracy:.2%}"
        if info.held_out_f1 is not None:
            shown["F1"] = f"{100 * info.held_out_f1:.1f}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(info.round - self.bar.n)
        if self.callback:
            self.callback(info)

    def say_kept(self, kept: int) -> None:
        """Show at the end of the bar which round early stopping has chosen."""
        if not self._judged:
            return
        last = max(self._judged)
        monitor = self._judged[last].monitor
        assert monitor is not None
        best = self._judged.get(kept)
        value = None if best is None else getattr(best, f"held_out_{monitor}")
        self.bar.set_postfix_str(kept_line(kept, last, monitor, value))
