"""What the rest of a document says of a name: other places of the same word, and lists.

The pipe imports it; it imports tasks, and nothing else of the pipe.
"""
