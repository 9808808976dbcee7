"""Pages in HTML, each one self-contained file: markup, pictures, the look, the panel of a token.

Every room may import it; it imports none, and knows models only by the plain data they give.
"""
