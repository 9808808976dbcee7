"""Output codes: code words of labels, bits learned one by one or together, their chain.

Models may import it; it imports boosting, perceptron and the rooms below.
"""
