"""The driver's checkpoint: the model so far, from which a killed training goes on."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from spacy_treecrf.dask.cluster_rows import ClusterRows
from spacy_treecrf.engine.boosting.rounds import BestRound
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.storage import container
from spacy_treecrf.storage.files import as_path
from spacy_treecrf.storage.state_reader import StateReader

KIND = "dask-checkpoint"


class Checkpoint:
    """A file that holds the model after some rounds, replaced as a whole every few rounds."""

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        if every < 1:
            raise ValueError(f"treecrf: checkpoint_rounds is {every}; it must be 1 or more")
        self.path = as_path(path, "write the checkpoint")
        self.every = every
        self._about: dict[str, Any] = {}
        self._stored: tuple[int, int] = (0, 0)

    def describe(self, rows: ClusterRows, integer_labels: bool) -> None:
        """Note what the training is about, for all checkpoints that follow."""
        self._about = {
            "n_rows": rows.n_rows,
            "n_sequences": rows.n_sequences,
            "integer_labels": integer_labels,
        }

    def after_round(self, model: CRF, best: BestRound) -> None:
        if model.rounds % self.every:
            return
        state: dict[str, Any] = {
            "kind": KIND,
            **self._about,
            "model": model.to_state(),
            "risen_round": best.risen_round,
            "judged": best.learned is not None,
        }
        if best.learned is not None:
            state["values"] = np.array(best.value, np.float64)
            state["best"] = replace(model, potentials=best.learned).to_state()
        container.save(self.path, state)

    def read(self) -> tuple[CRF, BestRound, list[Any]] | None:
        """The model to go on with, the best round so far and the labels; None: there is no file."""
        if not self.path.exists():
            return None
        reader = StateReader(container.read(self.path))
        reader.string("kind", choices=(KIND,))
        model = CRF.from_state(reader.table("model"))
        self._stored = reader.integer("n_rows", 1, 2**62), reader.integer("n_sequences", 1, 2**62)
        best = BestRound(risen_round=reader.integer("risen_round", 0, 2**31))
        if reader.boolean("judged"):
            figure, log_p = reader.array("values", np.float64, (2,)).tolist()
            best.value = figure, log_p
            best.learned = CRF.from_state(reader.table("best")).potentials
        integers = reader.boolean("integer_labels")
        classes = [int(label) for label in model.labels] if integers else list(model.labels)
        return model, best, classes

    def checked(self, model: CRF, settings: Settings, rows: ClusterRows) -> CRF:
        """The model with settings of now; a checkpoint of another training is refused."""
        found = rows.n_rows, rows.n_sequences
        if found != self._stored:
            raise ValueError(
                f"treecrf: the checkpoint {str(self.path)!r} is of a training on {self._stored[0]} "
                f"rows in {self._stored[1]} sequences, but the parts hold {found[0]} in "
                f"{found[1]}; pass the same parts, or remove the file to begin anew"
            )
        now = settings.resolved(len(model.labels))
        same = replace(model.settings, rounds=now.rounds, threads=now.threads, spill=now.spill)
        if now != same:
            raise ValueError(
                f"treecrf: the checkpoint {str(self.path)!r} is of a training with other settings; "
                "use the same (rounds may change), or remove the file to begin anew"
            )
        return replace(model, settings=now)
