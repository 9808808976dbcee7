"""What calibration finds, and a CRF applies: see `models.calibration.search`."""

from __future__ import annotations

from typing import NamedTuple

from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve


class Correction(NamedTuple):
    """How to change a CRF: divide all scores, then take something off the score of O.

    curve: What the scores of each row are then divided by.
    """

    temperature: float
    outside: float = 0.0
    curve: TemperatureCurve | None = None
