"""Arrays in, arrays out: the algorithms, in numpy and numba, without spaCy.

At this level lies what all rooms share: how kernels and their steps are compiled, sequences,
threads, sampling, the grid of exact sums, and what settings are made of.
The rooms import downwards: codes, future > memm > boosting > missing_values > trees > encoding.
"""
