"""Calibration of a pipe, by held-out examples or by its own training examples.

Of the latter, each fold is judged by a twin of the pipe that has learned from the other folds; see
`models.calibration.folds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from itertools import chain
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.labels.biluo import OUTSIDE, Label
from spacy_treecrf.models.calibration.folds import Fold, check_folds, cut_into_folds, names_of
from spacy_treecrf.models.calibration.search import (
    HeldOutLabels,
    Wanted,
    calibratable,
    can_lower_outside,
    found_correction,
    require_outside,
)
from spacy_treecrf.models.spans.spans_for_f1 import expected_f1_of
from spacy_treecrf.pipeline.evidence.document_evidence import Weights
from spacy_treecrf.pipeline.pipe_protocols import LearningPipe

# Told after each step: how many rounds are done, and how many there are in all.
Report = Callable[[int, int], None]


class CrossCalibration(NamedTuple):
    """What the twins of a pipe have told.

    temperature: What all scores are divided by. outside: What is then taken off the score of O.
    expected_f1: The F1 that corrected twins expect of the spans of docs that they have not seen;
    None where labels are no spans.
    """

    temperature: float
    outside: float
    expected_f1: float | None


@contextmanager
def held_out(pipe: LearningPipe, examples: Sequence[Example]) -> Iterator[HeldOutLabels]:
    """Examples that a pipe has not learned from, under its model."""
    ids = pipe.learner.label_ids(pipe.learner.gold(examples))
    with pipe.predictor() as predictor:
        data = pipe.encode([example.predicted for example in examples])
        yield HeldOutLabels.of(predictor, data, ids)


def calibrate(pipe: LearningPipe, examples: Sequence[Example], outside: bool, curve: bool) -> float:
    """Correct the scores of a pipe as held-out examples ask for; see `TreeCRF.calibrate`."""
    crf = calibratable(pipe.shim.trained, f"the pipe {pipe.name!r}")
    with held_out(pipe, examples) as labels:
        correction = found_correction([labels], Wanted(outside, curve))
    pipe.shim.learned = crf.corrected(correction)
    return correction.temperature


def require_spans(pipe: LearningPipe) -> None:
    """Refuse a pipe whose labels are no spans, which have names and an F1 that can be expected."""
    if pipe.task.constraints != "biluo":
        raise ValueError(
            f"treecrf: the labels of the pipe {pipe.name!r} are no spans, which new names and the "
            "F1 are about; leave these out"
        )


def require_chosen_spans(pipe: LearningPipe) -> None:
    """Refuse a pipe that sets the spans of its labels, whatever F1 it is told to expect."""
    require_spans(pipe)
    with pipe.predictor() as predictor:
        if predictor.chooses_spans:
            return
    raise ValueError(
        f"treecrf: the pipe {pipe.name!r} keeps the spans of its labels, whatever F1 is expected: "
        "other spans are found by models of order 1 with the constraints 'biluo' and the "
        "predictor 'viterbi', without rules and beam; leave --for-f1 out"
    )


def f1_expected_of(pipe: LearningPipe, docs: Sequence[Doc]) -> float:
    """The F1 that a pipe expects of the spans of docs that serve it best."""
    require_spans(pipe)
    return expected_f1_of(pipe.scored(docs), pipe.shim.labels)


def cross_calibrate(
    pipe: LearningPipe,
    examples: Sequence[Example],
    folds: int,
    new_names: bool,
    outside: bool | None,
    report: Report | None = None,
) -> CrossCalibration:
    """Correct the scores of a pipe as those of its twins ask for; see `TreeCRF.cross_calibrate`."""
    crf = calibratable(pipe.shim.trained, f"the pipe {pipe.name!r}")
    if crf.temperature != 1.0 or crf.potentials.outside or crf.curve is not None:
        raise ValueError(
            f"treecrf: the pipe {pipe.name!r} is calibrated already; use the pipeline as training "
            "left it"
        )
    if not crf.rounds:
        raise ValueError(
            f"treecrf: the pipe {pipe.name!r} has learned no rounds that its twins could repeat; "
            "train it first"
        )
    has_spans = pipe.task.constraints == "biluo"
    if new_names:
        require_spans(pipe)
    if outside is None:
        outside = has_spans and can_lower_outside(crf.labels, crf.chain.order)
    elif outside:
        require_outside(crf.labels, crf.chain.order)
    twins: list[tuple[LearningPipe, list[Doc]]] = []
    parts = []
    cut = _folds_of(pipe, examples, folds, new_names)
    with ExitStack() as stack:
        for k, (known, held) in enumerate(cut):
            tell = _counting_from(k, len(cut), crf.rounds, report)
            twin = _trained_twin(pipe, [examples[i] for i in known], crf.rounds, tell)
            judged = [examples[i] for i in held]
            parts.append(stack.enter_context(held_out(twin, judged)))
            twins.append((twin, [example.predicted for example in judged]))
        correction = found_correction(parts, Wanted(outside))
    f1 = None
    if has_spans:
        for twin, _ in twins:
            twin.shim.learned = calibratable(twin.shim.trained, "a twin").corrected(correction)
        scored = chain.from_iterable(twin.scored(docs) for twin, docs in twins)
        f1 = expected_f1_of(scored, crf.labels)
    pipe.shim.learned = crf.corrected(correction)
    return CrossCalibration(correction.temperature, correction.outside, f1)


def _folds_of(
    pipe: LearningPipe, examples: Sequence[Example], folds: int, new_names: bool
) -> list[Fold]:
    """Numbers of examples to learn from and to judge; those of one text are on one side."""
    by_text: dict[str, list[int]] = {}
    for i, example in enumerate(examples):
        by_text.setdefault(example.reference.text, []).append(i)
    units = list(by_text.values())
    check_folds(folds, len(units), "different texts")
    gold = pipe.learner.gold(examples)
    names = names_of([_words(examples, gold, own) for own in units]) if new_names else None
    found = []
    for known, held in cut_into_folds(len(units), folds, names):
        known, held = ([i for unit in part for i in units[unit]] for part in (known, held))
        if not any(label is not None for i in known for label in gold[i]):
            raise ValueError(
                "treecrf: nothing annotated is left to learn from but what is judged"
                + (", or has one of its names; use more folds, or leave new names out" * new_names)
                + "; annotate more docs" * (not new_names)
            )
        found.append((known, held))
    return found


def _words(
    examples: Sequence[Example], gold: Sequence[Sequence[Label]], own: Sequence[int]
) -> list[tuple[str, bool]]:
    """The annotated words of some examples, and whether they are in spans."""
    return [
        (token.lower_, label != OUTSIDE)
        for i in own
        for token, label in zip(examples[i].predicted, gold[i], strict=True)
        if label is not None
    ]


def _trained_twin(
    pipe: LearningPipe, examples: Sequence[Example], rounds: int, tell: Callable[[int], None]
) -> LearningPipe:
    """A pipe of the same settings, labels and vocabulary that has learned from these examples."""
    twin = deepcopy(pipe, {id(pipe.vocab): pipe.vocab})
    twin.initialize(lambda: examples, labels=pipe.labels)
    twin.cfg |= Weights(None, None).decided(pipe.cfg)._asdict()  # not those of a new pipe
    done = 0
    while done < rounds:
        twin.learner.add(examples)
        twin.learner.step(min(pipe.rounds_per_step, rounds - done))
        if twin.shim.trained.rounds == done:  # there are no more, by the setting of the model
            break
        done = twin.shim.trained.rounds
        tell(done)
    twin.forget_examples()  # there are many twins, and what one has learned from takes memory
    return twin


def _counting_from(
    fold: int, folds: int, rounds: int, report: Report | None
) -> Callable[[int], None]:
    """A function that is told the rounds of one twin, and reports those of all."""

    def tell(done: int) -> None:
        if report is not None:
            report(fold * rounds + done, folds * rounds)

    return tell
