"""What a pipe learns from: examples gathered over batches, their weights, and uncertain labels.

The pipe imports it; it imports tasks, and nothing else of the pipe.
"""
