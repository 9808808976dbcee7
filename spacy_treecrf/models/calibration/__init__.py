"""Calibration: the temperature, curve or lower score of O that makes probabilities honest.

Estimators, the pipe and taggers import it; it imports models and what models may import.
"""
