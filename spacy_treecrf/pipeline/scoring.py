"""The scores that a pipe reports, and which of them count where a pipeline has several pipes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.training import Example

from spacy_treecrf.pipeline.likelihood import likelihood_of_examples
from spacy_treecrf.pipeline.pipe_protocols import LearningPipe

KIND = "treecrf"  # with which the names of the scores of all pipes begin
SCORE = f"{KIND}_score"


def scores_of(pipe: LearningPipe, examples: Sequence[Example], **kwargs: Any) -> dict[str, Any]:
    """The scores of a pipe's task, and those of any task; see `TreeCRF.score`."""
    scores = (pipe.scorer or pipe.task.score)(examples, **kwargs)
    main = [key for key, weight in pipe.task.score_weights.items() if weight]
    own = {SCORE: scores.get(main[0]) if main else None}
    own |= likelihood_of_examples(pipe, examples, agreed=True)
    if pipe.name != KIND:  # so that several pipes can be told apart
        own |= {f"{pipe.name}{key.removeprefix(KIND)}": own[key] for key in tuple(own)}
    return {**scores, **own}


def warn_of_shared_score(nlp: Language, kind: type) -> None:
    """Warn where the final score counts `treecrf_score` and several pipes of this kind report it.

    The last pipe's is the one that counts, which spaCy chooses the best model by.
    """
    names = [name for name, pipe in nlp.pipeline if isinstance(pipe, kind)]
    weights = nlp.config["training"].get("score_weights", {})
    if len(names) > 1 and weights.get(SCORE):
        own = " and ".join(f"{name}_score" for name in names if name != KIND)
        warnings.warn(
            f"treecrf: the pipes {', '.join(names)} all report the score {SCORE!r}, and the best "
            f"model is chosen by the last one alone; set it to null in [training.score_weights], "
            f"and weigh {own} there, or scores of spaCy such as ents_f",
            stacklevel=3,
        )
