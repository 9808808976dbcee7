"""Inference on chains of any order: forward-backward, decoding, spans, constraints, beams.

Everything that scores label sequences may import it; it imports the root of the engine alone.
"""
