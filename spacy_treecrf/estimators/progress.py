"""Progress of a training on the terminal."""

from __future__ import annotations

from tqdm import tqdm

from spacy_treecrf.engine.boosting.rounds import Callback, RoundInfo


class Progress:
    """Passes each round on to the user's callback and, if wanted, to a progress bar."""

    def __init__(self, callback: Callback | None, rounds: int, verbose: bool) -> None:
        self.callback = callback
        self.bar = tqdm(total=rounds, unit="round", disable=not verbose)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def __call__(self, info: RoundInfo) -> None:
        shown = {"log-likelihood": f"{info.log_likelihood:.4f}"}
        if info.held_out_accuracy is not None:
            shown["held-out"] = f"{info.held_out_log_likelihood:.4f}"
            shown["accuracy"] = f"{info.held_out_accuracy:.2%}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(info.round - self.bar.n)
        if self.callback:
            self.callback(info)
