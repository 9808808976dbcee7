"""Locally normalised models: MEMMs, and those with future features.

Estimators, the pipe, explanations and evaluation import it; it imports models and what models may
import.
"""
