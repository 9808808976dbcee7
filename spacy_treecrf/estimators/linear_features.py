"""Learned weights by name, as sklearn-crfsuite has them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.estimators.base import SequenceEstimator

Weights = npt.NDArray[np.floating[Any]]
# Of features (n_features, n_labels), of numeric columns (n_numeric, n_labels), and of transitions
# (n_labels + 1, n_labels), whose last row is of first labels.
WeightTables = tuple[Weights, Weights, Weights]


class LinearFeatures(SequenceEstimator):
    """An estimator that learns weights of features and of transitions."""

    @abstractmethod
    def _linear_part(self) -> WeightTables:
        """The learned weights."""

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The linear weights {(attribute, label): weight} that are not 0.

        An attribute is a feature as "word=the" or, of a numeric column, its name; the weight is
        then that of the standardised number. What trees add is not in it: they look at several
        features together.
        """
        columns, labels = self._fitted().columns, self.classes_
        categorical, numeric, _ = self._linear_part()
        parts = [(columns.feature_names, categorical), (columns.numeric_names, numeric)]
        return {
            (names[i], labels[k]): float(part[i, k])
            for names, part in parts
            for i, k in np.argwhere(part).tolist()
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The scores {(label_from, label_to): weight} of transitions that are not 0.

        Scores of first labels, forbidden transitions and what trees see in previous labels are not
        in it.
        """
        labels = self.classes_
        moves = self._linear_part()[2][:-1]
        return {(labels[u], labels[v]): float(moves[u, v]) for u, v in np.argwhere(moves).tolist()}
