"""The spaCy side: the `treecrf` pipe, its tasks, training and measured confidence."""
