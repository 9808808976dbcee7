"""Output coding as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.estimators.boosted_crf import BoostedCRF
from spacy_treecrf.estimators.perceptron import PerceptronTagger
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.perceptron_settings import PerceptronSettings
from spacy_treecrf.models.secoc import SECOC, SECOCRecipe
from spacy_treecrf.models.secoc_settings import Base, SECOCSettings

NAMED: dict[str, Base] = {"boosted": Settings(), "perceptron": PerceptronSettings()}


class SECOCCRF(SequenceEstimator):
    """A CRF for hundreds of labels: labels are code words, and bits are learned (Hao, Fern 2007).

    X and y are those of `BoostedCRF`. The defaults learn all bits together.

    bits: length of the code words; None takes 16 for each bit that the labels' numbers have, and
        no more than there are labels.
    history: columns before it that a column sees the predictions of, at the position and its
        neighbours: 0 (i-SECOC), a number (c-SECOC), or "all".
    base: what learns a bit: "boosted" or "perceptron", or an estimator with its own parameters, as
        in `base=BoostedCRF(order=0, rounds=40)`. Its order is that of a bit: 0 is "iid" coding.
        Joint training has no linear rounds; else its settings mean what they mean for labels.
    code: "random"; "distant" (of 200 random codes the one whose closest words differ most);
        "one_per_class"; "exhaustive" (all columns there are, up to 8 labels).
    training: "joint" grows a tree for each bit in every round, by the gradient of the labels'
        likelihood, so that no bit is learned for its own sake; "columns" learns each as a CRF of
        two labels, as published. "auto" is joint where it can be: boosted bits, no history, decoded
        jointly.
    cascade: what a column with history sees of others in training: "cross_fitted" predictions, by
        models that did not learn from the sequence; or "training", as published, which are too good
        to be true.
    decoding: "joint", a chain over labels with learned transitions; or the published "l1" (distance
        of bit probabilities and code word), "hamming" and "likelihood", each position on its own.
    folds: of cross-fitting, which also serves joint decoding of columns learned one by one. A
        column is then the mean of so many models, each learned from all folds but one.
    beam: labels at each position that training and prediction follow; None: all; "auto": all in
        prediction, and 16 in training from 200 labels on.
    constraints, predictor: as of `BoostedCRF`. threads: 0 means all cores; the result is the same.
    seed: of the code and of all random draws.
    warm_start: `fit` goes on with a fitted or loaded model.
    verbose: show a progress bar. callback: called with a RoundInfo after every round, or column.
    """

    def __init__(
        self,
        bits: int | None = None,
        history: int | str = 0,
        base: str | BoostedCRF | PerceptronTagger = "boosted",
        code: str = "random",
        training: str = "auto",
        cascade: str = "cross_fitted",
        decoding: str = "joint",
        folds: int = 5,
        beam: int | str | None = "auto",
        constraints: str = "none",
        predictor: str = "viterbi",
        threads: int = 0,
        seed: int = 0,
        warm_start: bool = False,
        verbose: bool = False,
        callback: Callable[[RoundInfo], None] | None = None,
    ) -> None:
        self.bits = bits
        self.history = history
        self.base = base
        self.code = code
        self.training = training
        self.cascade = cascade
        self.decoding = decoding
        self.folds = folds
        self.beam = beam
        self.constraints = constraints
        self.predictor = predictor
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = SECOC
    model_: SECOC

    def _recipe(self) -> SECOCRecipe:
        base: Any = self.base
        if isinstance(base, str) and base in NAMED:
            base = NAMED[base]
        elif isinstance(base, (BoostedCRF, PerceptronTagger)):
            base = base._recipe().settings
        else:
            raise ValueError(
                f"treecrf: setting 'base' is {base!r}; use 'boosted', 'perceptron', or "
                "an estimator, BoostedCRF(...) or PerceptronTagger(...)"
            )
        names = [name for name in SECOCSettings.names() if name != "base"]
        values = {name: getattr(self, name) for name in names}
        return SECOCRecipe(SECOCSettings(**values, base=base))

    @classmethod
    def _parameters_of(cls, model: SequenceModel) -> dict[str, Any]:
        settings = model.settings
        assert isinstance(settings, SECOCSettings)
        base = settings.base
        made = {name: getattr(base, name) for name in type(base).names()}
        estimator = BoostedCRF(**made) if isinstance(base, Settings) else PerceptronTagger(**made)
        own = {name: getattr(settings, name) for name in SECOCSettings.names()}
        return {**own, "base": estimator}
