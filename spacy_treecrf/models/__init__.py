"""What is learned: the boosted CRF and its file format."""
