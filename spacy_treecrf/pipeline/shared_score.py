"""Several pipes in one pipeline: which of them the score that all report is about."""

from __future__ import annotations

import warnings

from spacy.language import Language

SCORE = "treecrf_score"


def warn_of_shared_score(nlp: Language, kind: type) -> None:
    """Warn where the final score counts `treecrf_score` and several pipes of this kind report it.

    The last pipe's is the one that counts, which spaCy chooses the best model by.
    """
    names = [name for name, pipe in nlp.pipeline if isinstance(pipe, kind)]
    weights = nlp.config["training"].get("score_weights", {})
    if len(names) > 1 and weights.get(SCORE):
        own = " and ".join(f"{name}_score" for name in names if name != "treecrf")
        warnings.warn(
            f"treecrf: the pipes {', '.join(names)} all report the score {SCORE!r}, and the best "
            f"model is chosen by the last one alone; set it to null in [training.score_weights], "
            f"and weigh {own} there, or scores of spaCy such as ents_f",
            stacklevel=3,
        )
