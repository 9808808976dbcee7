"""The boosted CRF as an estimator on a Dask cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from typing import Any

import dask
from distributed import Client

from spacy_treecrf.columnar.template import Template
from spacy_treecrf.dask.checkpoint import Checkpoint
from spacy_treecrf.dask.cluster_booster import ClusterBooster
from spacy_treecrf.dask.cluster_rows import ClusterRows, Encoding
from spacy_treecrf.dask.cluster_trainer import ClusterTrainer
from spacy_treecrf.dask.connecting import connected
from spacy_treecrf.dask.crew import Crew, Traffic
from spacy_treecrf.dask.parts import list_parts
from spacy_treecrf.dask.shard import Job
from spacy_treecrf.engine.boosting.rounds import BestRound
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.engine.encoding.missing_methods import IN_TREES
from spacy_treecrf.engine.setting import refused
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.models.crf import CRF, empty_crf
from spacy_treecrf.models.ruled import rules_of, with_rules
from spacy_treecrf.models.stored_parts import masks_of
from spacy_treecrf.storage import container


def refuse_settings(settings: Settings) -> None:
    """Refuse what a cluster cannot do."""
    if settings.step == "conjugate":
        raise refused("step", "conjugate", "'newton' or 'gradient' on a cluster")
    if settings.pseudo_rounds:
        raise refused("pseudo_rounds", settings.pseudo_rounds, "0 on a cluster")
    if settings.word_dropout:
        raise refused("word_dropout", settings.word_dropout, "0 on a cluster")
    if settings.missing in IN_TREES:
        raise refused(
            "missing", settings.missing, "'absent', 'indicator' or 'imputation' on a cluster"
        )


class DaskBoostedCRF:
    """A `BoostedCRF` that is trained on a Dask cluster.

    Parts of the data are read where they will live. The model is equal, bit for bit, to that of
    `BoostedCRF` on all parts one after the other, for any number of workers and any parts.

    Parameters
    ----------
    client : distributed.Client or str or None, default=None
        The cluster, or the address of its scheduler. None starts a `LocalCluster` of this machine's
        cores for each call, and closes it afterwards.
    **settings
        Those of `BoostedCRF`. Not possible on a cluster are step="conjugate", pseudo_rounds,
        missing="instance_weighting" or "surrogate", and warm_start.
    """

    def __init__(self, client: Client | str | None = None, **settings: Any) -> None:
        self.client = client
        self.local = BoostedCRF(**settings)
        self.traffic_: list[Traffic] = []  # of each round
        self.n_rows_ = self.n_sequences_ = 0  # of the training data
        self._check()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"client": self.client, **self.local.get_params(deep)}

    def fit(
        self,
        parts: Any,
        dev_parts: Any = None,
        *,
        template: Template | None = None,
        task: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_rounds: int = 5,
    ) -> DaskBoostedCRF:
        """Learn from parts; with held-out parts, stop early and keep the best round.

        parts: A dask bag of (X, y) sequences, a list of delayed (X, y) lists, or paths (also globs
            and addresses of fsspec) of column files or of `.spacy` files.
        template: How column files are read; by default as `spacy-treecrf train` does. Of `.spacy`
            files, what words become.
        task: Which annotation of `.spacy` files is learned, e.g. "ents"; see `read_docs`.
        checkpoint: A file for the model so far, written every few rounds. If it is there, training
            goes on from it, on this cluster or another one.
        """
        settings = self._check()
        training = list_parts(parts, "parts", template, task)
        template = training[0].template if template is None else template
        held_out = [] if dev_parts is None else list_parts(dev_parts, "dev_parts", template, task)
        training, held_out = (
            [replace(part, spill=settings.spill) for part in some] for some in (training, held_out)
        )
        stored = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_rounds)
        with connected(self.client) as client:
            crew = Crew(client)
            try:
                rows = ClusterRows(crew, training, held_out)
                self._train(settings, rows, stored)
            finally:
                crew.close()
        return self

    def _train(self, settings: Settings, rows: ClusterRows, stored: Checkpoint | None) -> None:
        found = stored.read() if stored is not None else None
        best: BestRound | None = BestRound()
        if found is None:
            encoding = rows.learn(settings)
            crf = self._new(settings, encoding, rows)
        else:
            crf, best, classes = found
            encoding = Encoding(crf.columns, classes)
            rows.encode(encoding)
            crf = stored.checked(crf, settings, rows) if stored is not None else crf
        self.n_rows_, self.n_sequences_ = rows.n_rows, rows.n_sequences
        job = Job(crf.columns, len(crf.labels), crf.masks, crf.settings, span_labels(crf.labels))
        booster = ClusterBooster(job, rows, encoding, crf.potentials)
        booster.spans, booster.best_so_far = job.spans, best
        booster.start()
        if stored is not None:
            stored.describe(rows, isinstance(encoding.classes[0], int))
        self.local.integer_labels_ = isinstance(encoding.classes[0], int)
        try:
            self.local._train(ClusterTrainer(crf, booster, stored))
        finally:
            self.traffic_ = booster.traffic

    def _new(self, settings: Settings, encoding: Encoding, rows: ClusterRows) -> CRF:
        labels = [str(label) for label in encoding.classes]
        settings = settings.resolved(len(labels))
        observed = rows.observed(len(labels)) if settings.constraints == "observed" else None
        masks = masks_of(settings.constraints, labels, settings.order, observed)
        return empty_crf(settings, labels, encoding.columns, masks)

    def _check(self) -> Settings:
        """The settings, checked; what a cluster cannot do is refused."""
        settings = self.local._recipe().settings
        refuse_settings(settings)
        if self.local.warm_start:
            raise refused("warm_start", True, "False on a cluster; a checkpoint can go on")
        return settings

    def to_local(self) -> BoostedCRF:
        """The fitted model as an ordinary `BoostedCRF`."""
        self.local._fitted()
        return self.local

    @property
    def classes_(self) -> list[Any]:
        """The labels, of the type that y had."""
        return self.local.classes_

    def predict(self, parts: Any) -> Any:
        """Labels of parts of X, lazily: a bag for a bag, else a list of delayed lists."""
        return self._lazily(parts, "predict")

    def predict_marginals(self, parts: Any) -> Any:
        """P(label) at every position, as dicts, lazily as `predict`."""
        return self._lazily(parts, "predict_marginals")

    def _lazily(self, parts: Any, method: str) -> Any:
        self.local._fitted()
        state = with_rules(self.local.model_, rules_of(self.local._settings())).to_state()
        stored = dask.delayed(container.dump(state))
        integers = self.local.integer_labels_
        if hasattr(parts, "map_partitions"):
            return parts.map_partitions(_apply, stored, method, integers)
        if not isinstance(parts, (list, tuple)):
            raise ValueError(
                f"treecrf: parts is a {type(parts).__name__}; use a dask bag of sequences, or a "
                "list of delayed lists of sequences"
            )
        apply = dask.delayed(_apply, pure=False)
        return [apply(part, stored, method, integers) for part in parts]


@lru_cache(maxsize=2)
def _loaded(stored: bytes, integers: bool) -> BoostedCRF:
    model = CRF.from_state(container.parse(stored))
    estimator = BoostedCRF(**{**model.settings.to_dict(), "threads": 1})
    estimator.model_, estimator.integer_labels_ = model, integers
    return estimator


def _apply(X: Any, stored: bytes, method: str, integers: bool) -> list[Any]:
    """The task of a prediction."""
    return list(getattr(_loaded(stored, integers), method)(list(X)))
