"""Output coding: its settings, its model, and the two ways of training it.

Estimators, the pipe, explanations and clusters import it; it imports models and what models may
import.
"""
