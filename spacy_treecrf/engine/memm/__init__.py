"""Locally normalised models: previous labels as features, their scores, beam search.

Models and the room future may import it; it imports boosting and the rooms below.
"""
