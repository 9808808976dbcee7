"""Output coding as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.estimators.boosted_crf import BoostedCRF
from spacy_treecrf.estimators.perceptron import PerceptronTagger
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.secoc.recipe import SECOC, SECOCRecipe
from spacy_treecrf.models.secoc.settings import BASES, SECOCSettings


class SECOCCRF(SequenceEstimator):
    """A CRF for hundreds of labels: labels are code words, and bits are learned (Hao, Fern 2007).

    X and y are those of `BoostedCRF`. The defaults learn all bits together.

    Parameters
    ----------
    bits : int or None, default=None
        Length of the code words. None takes 16 for each bit that the labels' numbers have, and
        no more than there are labels.
    history : int or "all", default=0
        Number of columns before it whose predictions a column sees. A column sees them at its
        position and the neighbours. 0 is i-SECOC, a number c-SECOC, "all" takes every column
        before it.
    base : {"boosted", "perceptron"} or estimator, default="boosted"
        What learns a bit. It is "boosted" or "perceptron", or an estimator with its own
        parameters, as in `base=BoostedCRF(order=0, rounds=40)`. Its order is that of a bit: 0
        is "iid" coding. Joint training has no linear rounds; else its settings mean what they
        mean for labels.
    code : {"random", "distant", "one_per_class", "exhaustive"}, default="random"
        How code words are made. "distant" is of 200 random codes the one whose closest words
        differ most, "exhaustive" has all columns there are, for up to 8 labels.
    training : {"auto", "joint", "columns"}, default="auto"
        Whether all bits are learned together, or each bit (a column of the code) as its own
        CRF. "joint" grows a tree for each bit in every round, by the gradient of the labels'
        likelihood, so that no bit is learned for its own sake. "columns" learns each as a CRF
        of two labels, as published. "auto" is joint where it can be: boosted bits, no history,
        decoded jointly.
    cascade : {"cross_fitted", "training"}, default="cross_fitted"
        Which predictions of other columns a column with history sees in training.
        "cross_fitted" predictions are by models that did not learn from the sequence. Those of
        "training", as published, are too good to be true.
    decoding : {"joint", "l1", "hamming", "likelihood"}, default="joint"
        How labels are found from the probabilities of bits. "joint" is a chain over labels with
        learned transitions. The published "l1" (distance of bit probabilities and code word),
        "hamming" and "likelihood" decide each position on its own.
    folds : int, default=5
        Number of folds of cross-fitting. Cross-fitting also serves joint decoding of columns
        learned one by one. A column is then the mean of so many models, each learned from all
        folds but one.
    beam : int or "auto" or None, default="auto"
        Number of labels that are followed at each position. None follows all labels. "auto"
        follows all in prediction, and 16 in training from 200 labels on.
    constraints : {"none", "observed", "bio", "biluo"}, default="none"
        Which transitions are possible at all. "observed" allows those in the training data,
        "bio" and "biluo" those that the scheme allows, "none" all.
    rules : list of str or None, default=None
        Rules that the labels of a predicted sequence follow as a whole. See `BoostedCRF`.
    predictor : {"viterbi", "marginal"}, default="viterbi"
        What is predicted: the best sequence (viterbi) or the best labels one by one (marginal).
    threads : int, default=0
        Number of threads, which never changes the result; 0 means all cores.
    seed : int, default=0
        Seed of the code and of all random draws.
    warm_start : bool, default=False
        Whether `fit` goes on with a fitted or loaded model, as if it had never stopped. A model
        that lacks bits keeps, also in its file, what it needs for that: a number for each row of
        the training data and each bit, if bits are cross-fitted.
    verbose : bool, default=False
        Whether a progress bar is shown.
    callback : callable or None, default=None
        A function that is called with a RoundInfo after every round, or column.
    """

    # Many parameters: scikit-learn reads them from the signature.
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
        rules: Sequence[str] | None = None,
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
        self.rules = rules
        self.predictor = predictor
        self.threads = threads
        self.seed = seed
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    _model_type = SECOC
    _settings_type = SECOCSettings
    model_: SECOC

    def _recipe(self) -> SECOCRecipe:
        base: Any = self.base
        if isinstance(base, str) and base in BASES:
            base = BASES[base]()
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
        learner = BoostedCRF if isinstance(settings.base, Settings) else PerceptronTagger
        return {**settings.to_dict(), "base": learner(**settings.base.to_dict())}
