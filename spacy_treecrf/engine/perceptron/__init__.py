"""The averaged and the voted perceptron on chains.

Models and the room codes may import it; it imports chain.
"""
