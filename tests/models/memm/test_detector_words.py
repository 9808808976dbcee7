"""Detectors in words, on trees written by hand."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.future.detectors import Detector
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.trees.forest import grow_forest
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF, NUMERIC
from spacy_treecrf.models.memm.detector_words import describe_detector
from spacy_treecrf.models.memm.settings import FutureSettings
from tests.engine.training_data import Training


def detector_of(*nodes: tuple[int, int, int, int, int, float], start: float = -5.0) -> Detector:
    """One tree; a node is kind, feature, threshold, left, right, value."""
    columns = list(zip(*nodes, strict=True))
    dtypes = (np.uint8, np.int32, np.int32, np.int32, np.int32, np.float64)
    arrays = [np.array(c, dtype) for c, dtype in zip(columns, dtypes, strict=True)]
    zeros = np.zeros(len(nodes))
    return Detector(1, start, 2.0, grow_forest([Tree(*arrays, zeros, zeros)], [0], 0))


def letters() -> Training:
    X = [[{"letter": "y", "end": True, "size": 1.0}, {"letter": "z", "size": 2.0}]] * 3
    columns, offsets, feature_ids, numeric = fit_columns(X)
    data = Sequences(offsets, feature_ids, numeric, np.zeros(6, np.int32), np.ones(6, np.float32))
    return Training(columns, data, ["0", "1"])


def test_a_detector_is_described_by_its_strongest_path() -> None:
    columns = letters().columns
    y, z = (columns.feature_names.index(f"letter={v}") for v in "yz")
    end = columns.feature_names.index("end")
    detector = detector_of(
        (CATEGORICAL, y, 0, 1, 2, 0.0),
        (CATEGORICAL, z, 0, 3, 4, 0.0),
        (LEAF, -1, 0, -1, -1, 9.0),
        (LEAF, -1, 0, -1, -1, -1.0),
        (LEAF, -1, 0, -1, -1, 5.5),
    )
    words = describe_detector(detector, columns, "1", FutureSettings(bag=4), 3)
    assert words == (
        "a letter y (p = 0.98) or a letter z (p = 0.62) within the next 4 speaks for '1'"
    )
    words = describe_detector(detector, columns, "1", FutureSettings(bag=4), 1)
    assert words == ("a letter y (p = 0.98) or 1 further pattern within the next 4 speaks for '1'")
    words = describe_detector(detector, columns, "1", FutureSettings(bag=2, right_to_left=True), 1)
    assert "within the 2 before" in words
    without = detector_of(
        (CATEGORICAL, end, 0, 1, 2, 0.0),
        (LEAF, -1, 0, -1, -1, 9.0),
        (LEAF, -1, 0, -1, -1, -9.0),
    )
    words = describe_detector(without, columns, "x", FutureSettings(), 3)
    assert words == "no end (p = 0.98) anywhere after speaks for 'x'"
    both = detector_of(
        (CATEGORICAL, y, 0, 1, 2, 0.0),
        (LEAF, -1, 0, -1, -1, -1.0),
        (CATEGORICAL, end, 0, 3, 4, 0.0),
        (LEAF, -1, 0, -1, -1, 9.0),
        (LEAF, -1, 0, -1, -1, -9.0),
    )
    words = describe_detector(both, columns, "x", FutureSettings(), 3)
    assert words == "a letter y without end (p = 0.98) anywhere after speaks for 'x'"


def test_numbers_are_described_by_their_range() -> None:
    columns = letters().columns
    detector = detector_of(
        (NUMERIC, 0, 1, 1, 2, 0.0),
        (LEAF, -1, 0, -1, -1, -1.0),
        (LEAF, -1, 0, -1, -1, 9.0),
    )
    words = describe_detector(detector, columns, "1", FutureSettings(bag=1), 3)
    assert words == "size above 1.5 (p = 0.98) within the next 1 speaks for '1'"
