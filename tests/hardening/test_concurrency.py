"""Eight threads that predict at the same time with one model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from tests.pipeline.tiny_pipes import CORPUS, TASKS, labels_on, trained_nlp, words_of
from tests.tiny import tiny_data

THREADS = 8
X, Y = tiny_data(30)
ESTIMATORS = [
    BoostedCRF(rounds=4, min_rows=1, min_count=1),
    BoostedCRF(rounds=4, min_rows=1, min_count=1, family="joint", missing="surrogate"),
    BoostedMEMM(rounds=4, min_rows=1, min_count=1),
    FutureFeatureMEMM(rounds=4, min_rows=1, min_count=1),
    SECOCCRF(bits=3),
    PerceptronTagger(rounds=2),
]


def at_once(work):
    """What each of the threads got; they begin together."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda _: work(), range(THREADS)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}")
def test_threads_share_an_estimator(estimator, threads, tmp_path):
    estimator.set_params(threads=threads).fit(X, Y)
    path = tmp_path / "model"
    estimator.save(path)
    expected = [(estimator.predict(X), estimator.predict_marginals(X)) for _ in range(3)]
    new = type(estimator).load(path)  # nothing is computed yet

    def work():
        return [(new.predict(X), new.predict_marginals(X)) for _ in range(3)]

    assert at_once(work) == [expected] * THREADS


@pytest.mark.parametrize("task", TASKS)
def test_threads_share_a_pipeline(task):
    trained = trained_nlp(task)
    texts = [" ".join(words_of(sentence)) for sentence in CORPUS] * 5
    expected = [labels_on(doc, task) for doc in trained.pipe(texts)]
    nlp = trained_nlp(task, steps=0).from_bytes(trained.to_bytes())

    def work():
        return [labels_on(nlp(text), task) for text in texts]

    assert at_once(work) == [expected] * THREADS
