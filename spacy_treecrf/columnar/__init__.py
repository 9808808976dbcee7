"""Column files: reading them, templates of features, a model that holds both.

Evaluation, taggers, formats and the command line may import it; it imports estimators and below,
and the sources of `features` where a model is given clusters, vectors or gazetteers.
"""
