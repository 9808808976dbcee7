"""Pure label code: BILUO and IOB labels, spans of labels in any scheme, where docs keep more.

No spaCy, no arrays. Everything may import it; it imports nothing of the package.
"""
