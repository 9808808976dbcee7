"""Training of spaCy pipelines on a Dask cluster: the docs stay on the workers that read them.

Only the command line may import this room; importing its modules loads dask and distributed.
"""
