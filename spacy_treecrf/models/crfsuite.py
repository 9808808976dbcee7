"""CRFs out of models that CRFsuite has trained: its weights become the linear part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.encoding.attribute_columns import (
    DIGITS,
    N_DIGITS,
    attribute_columns,
    keys_of,
)
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.stored_parts import BYTES_OF_A_WEIGHT, MAX_DENSE_BYTES, MAX_WEIGHT
from spacy_treecrf.storage.crfsuite_file import CRFsuiteFile, Weights

# What the digits of attributes that may be numbers take: 16 MB.
MAX_DIGIT_CELLS = 2**22


def crf_of_crfsuite(
    file: CRFsuiteFile, settings: Settings, numbers: Iterable[str] | None = None
) -> CRF:
    """A CRF with the weights of a CRFsuite model, which has done no round yet.

    numbers: attributes that may have any value. None: those that seem to be no texts of a key, if
    there are not too many of them.
    """
    settings = settings.resolved(len(file.labels))
    settings.check_labels(len(file.labels))
    for name, wanted in (("order", 1), ("missing", "absent"), ("constraints", "none")):
        if getattr(settings, name) != wanted:
            raise ValueError(
                f"treecrf: a model of CRFsuite has {name}={wanted!r}, not "
                f"{getattr(settings, name)!r}; leave it out"
            )
    n_labels = len(file.labels)
    attributes, states = _with_weights(file)
    _refuse_large(len(attributes), n_labels, len(states.weight) + len(file.transitions.weight))
    weights = np.zeros((len(attributes), n_labels))
    weights[states.source, states.target] = states.weight
    if numbers is None:
        number_attributes = _likely_numbers(attributes, weights)
    else:
        number_attributes = _named_numbers(list(numbers), attributes, weights)
    _refuse_names_of_digits(attributes, number_attributes)
    digits = DIGITS[:, None] * weights[number_attributes][:, None, :]
    categorical = np.concatenate([weights, digits.reshape(-1, n_labels)]).astype(np.float32)
    edges = np.zeros((n_labels + 1, n_labels), np.float32)
    edges[file.transitions.source, file.transitions.target] = file.transitions.weight
    linear = LinearWeights(categorical, np.zeros((0, n_labels), np.float32))
    nothing = LinearWeights.nothing(*linear.shape)
    return CRF(
        settings,
        file.labels,
        attribute_columns(attributes, number_attributes),
        constrain(settings.constraints, file.labels, order=settings.order),
        Potentials(edges, linear, nothing, (), 0),
    )


def on_grid(crf: CRF) -> CRF:
    """The CRF with its weights on the grid, where sums are exact, as boosting needs them."""
    potentials = crf.potentials
    linear = LinearWeights(to_grid(potentials.linear.categorical), potentials.linear.numeric)
    return replace(
        crf, potentials=replace(potentials, edges=to_grid(potentials.edges), linear=linear)
    )


def _with_weights(file: CRFsuiteFile) -> tuple[list[str], Weights]:
    """The attributes that have weights and are texts, and the weights by their new numbers."""
    texts = np.array([attribute is not None for attribute in file.attributes], bool)
    states = file.states
    own = texts[states.source] if len(texts) else np.zeros(0, bool)
    kept = np.unique(states.source[own])
    attributes = [attribute for a in kept.tolist() if (attribute := file.attributes[a]) is not None]
    source = np.searchsorted(kept, states.source[own])
    return attributes, Weights(source, states.target[own], states.weight[own])


def _refuse_large(n_attributes: int, n_labels: int, n_weights: int) -> None:
    """Refuse tables of weights that would be large and nearly empty."""
    n_bytes = 4 * n_labels * (n_attributes + n_labels)
    if n_bytes > max(MAX_DENSE_BYTES, BYTES_OF_A_WEIGHT * n_weights):
        raise ValueError(
            f"treecrf: the CRFsuite model has {n_weights} weights of {n_attributes} attributes and "
            f"{n_labels} labels; a table of them would take {n_bytes / 2**30:.1f} GB that are "
            "nearly empty: train a model with fewer labels"
        )


def _likely_numbers(
    attributes: list[str], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int32]:
    """Attributes that are no values of a key, and whose digits can be stored; none if too many."""
    keys = keys_of(attributes)
    pairs = zip(keys, attributes, strict=True)
    alone = np.array([key is attribute for key, attribute in pairs], bool)
    found = np.flatnonzero(alone & _has_room(weights)).astype(np.int32)
    if N_DIGITS * weights.shape[1] * len(found) > MAX_DIGIT_CELLS:
        return np.empty(0, np.int32)
    return found


def _named_numbers(
    numbers: list[str], attributes: list[str], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int32]:
    known = {attribute: a for a, attribute in enumerate(attributes)}
    room = _has_room(weights)
    for name in numbers:
        if not isinstance(name, str):
            raise ValueError(f"treecrf: numbers holds {name!r}; give names of attributes")
        if name in known and not room[known[name]]:
            raise ValueError(
                f"treecrf: numbers: {name!r} has weights above {_most_weight():.0f}, too large for "
                "any value; leave it out"
            )
    # One that the model does not know has no weight, whatever its value.
    return np.array(sorted({known[name] for name in numbers if name in known}), np.int32)


def _has_room(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    largest: npt.NDArray[np.bool_] = np.abs(weights).max(axis=1, initial=0.0) <= _most_weight()
    return largest


def _most_weight() -> float:
    return MAX_WEIGHT / float(DIGITS.max())


def _refuse_names_of_digits(attributes: list[str], numbers: npt.NDArray[np.int32]) -> None:
    """Refuse attributes that are called as the digits of others are."""
    known = set(attributes)
    for a in numbers.tolist():
        for digit in DIGITS.tolist():
            if (name := f"{attributes[a]} × {digit:g}") in known:
                raise ValueError(
                    f"treecrf: attributes: {name!r} is the name of a digit of {attributes[a]!r}; "
                    "read the model with numbers=[]"
                )
