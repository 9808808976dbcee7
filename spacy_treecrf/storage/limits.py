"""Limits of what files of models may hold."""

from __future__ import annotations

MAX_WEIGHT = 1e6  # of a feature, in our files and in those of CRFsuite
