"""Why a model gave a label: exact explanations as data, and how they are shown.

Estimators, the pipe and everything above may import it; it imports models and the engine. Its
`explanation` module loads no numba, so that pages and servers can be made of stored explanations.
"""
