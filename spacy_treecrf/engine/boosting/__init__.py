"""Rounds: residuals, steps, linear weights, the loop with early stopping, settings.

Models and the rooms memm, future and codes may import it; it imports the rooms below.
"""
