"""Training of a pipe on a cluster: what spaCy's loop asks of it is done by the workers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.dask.cluster_booster import ClusterBooster
from spacy_treecrf.dask.cluster_rows import Encoding
from spacy_treecrf.dask.cluster_trainer import ClusterTrainer
from spacy_treecrf.dask.shard import Job
from spacy_treecrf.distribute.doc_rows import DocRows
from spacy_treecrf.engine.boosting.span_f1 import span_labels
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.models.crf import CRF, CRFRecipe, empty_crf
from spacy_treecrf.models.stored_parts import masks_of
from spacy_treecrf.pipeline.learning import Learner
from spacy_treecrf.pipeline.shim import ModelShim
from spacy_treecrf.pipeline.tasks.task import Task


class ClusterLearner(Learner):
    """The training of a shim's model on docs that workers have; examples that come are ignored."""

    def __init__(
        self, rows: DocRows, shim: ModelShim, features: Extractor, task: Task, sequence: str
    ) -> None:
        super().__init__(shim, features, task, sequence)
        self.rows, self.extractor = rows, features
        self._begun = (0, 0)  # tokens and sequences that the columns were fitted on

    def label_names(self, pipe: str, examples: Sequence[Example]) -> list[str]:
        return self.rows.label_names

    def begin(self, examples: Sequence[Example]) -> None:
        """Fit columns on docs as they were read; on the gold ones if other pipes will write."""
        vocab = examples[0].predicted.vocab
        self.extractor.prepare(Doc(vocab, words=[self.rows.word]))
        self._provisional = self.features.reads_annotations
        sequence = self.sequence_before_pipes
        self.shim.learned, n_sequences = self._fitted_on_cluster(sequence, first=True)
        self._begun = self.rows.n_tokens, n_sequences
        self._trainer = None

    def add(self, examples: Sequence[Example]) -> float:
        """The loss of all docs on the workers."""
        if self._trainer is None:
            self._trainer = self._prepare_cluster()
        if self._trainer is None:
            return 0.0
        n_annotated = self._trainer.n_annotated
        loss = -self._trainer.log_likelihood * n_annotated
        return loss / max(1, n_annotated)

    def step(self, rounds: int) -> None:
        if self._trainer is not None:
            self._train(self._trainer, rounds)

    def _prepare_cluster(self) -> ClusterTrainer | None:
        """Let the workers encode their docs, as other pipes have annotated them."""
        rows = self.rows
        self._fit_again_on_cluster(rows.annotate())
        recipe = self.shim.recipe
        model = recipe.continued(self.shim.trained)
        assert isinstance(model, CRF)
        if unseen := [name for name in rows.label_names if not self._has(name)]:
            warnings.warn(
                f"treecrf: training examples have the label {unseen[0]!r}, which the pipe does not "
                "have: their tokens count as not annotated; name it in [initialize.components]",
                stacklevel=2,
            )
        encoding = Encoding(model.columns, list(model.labels))
        rows.encode(encoding)
        if not rows.n_rows:
            return None
        spans = span_labels(model.labels)
        job = Job(model.columns, len(model.labels), model.masks, model.settings, spans)
        booster = ClusterBooster(job, rows, encoding, model.potentials)
        booster.spans = spans
        booster.start()
        self._trainer_model = self.shim.learned
        return ClusterTrainer(model, booster, None)

    def _has(self, name: str) -> bool:
        return any(label == name or label.endswith(f"-{name}") for label in self.shim.labels)

    def _fit_again_on_cluster(self, n_sequences: int) -> None:
        """Fit the columns on docs that tell more than `begin` saw, in the order of training."""
        if (self.rows.n_tokens, n_sequences) > self._begun or self._provisional:
            before = self.shim.trained
            again, _ = self._fitted_on_cluster(self.sequence, first=False)
            # A pipe that learns at the same time has written next to nothing yet.
            known_better = len(before.columns.counts) > len(again.columns.counts)
            self.shim.learned = before if self._provisional and known_better else again
        self._provisional = False

    def _fitted_on_cluster(self, sequence: str, first: bool) -> tuple[CRF, int]:
        """A new model with the columns of all docs, and the number of their sequences."""
        rows, recipe = self.rows, self.shim.recipe
        assert isinstance(recipe, CRFRecipe)
        if self.shim.constraints_of_task and recipe.settings.order:
            recipe = recipe.changed(constraints=self.task.constraints)
        settings, labels = recipe.settings, self.shim.labels
        starts = rows.in_files if first else rows.in_training
        rows.learn_features(self.extractor, sequence, starts)
        limits = self.extractor.limits(settings.min_count, settings.max_bins, settings.missing)
        references = first and self._provisional
        columns, n_sequences = rows.fit_columns(
            self.extractor, limits, sequence, starts, references
        )
        resolved = settings.resolved(len(labels))
        seen = rows.observed(labels, sequence) if resolved.constraints == "observed" else None
        masks = masks_of(resolved.constraints, labels, resolved.order, seen)
        return empty_crf(resolved, labels, columns, masks), n_sequences
