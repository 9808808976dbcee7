"""Future features: noisy-OR detectors of patterns ahead, grown in turns with trees.

Models may import it; it imports memm, boosting and the rooms below.
"""
