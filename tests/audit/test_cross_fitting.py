"""Folds and the models that judge them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.audit.auditing import annotation_of, audit_sequences
from spacy_treecrf.audit.cross_fitting import CrossFit, Plan, deal_out
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from tests.audit.spoiled import QUICK, spoiled_rows


@given(
    groups=st.lists(st.integers(0, 8), min_size=9, max_size=40), folds=st.integers(2, 5),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_documents_stay_together_and_folds_are_of_one_size(groups, folds, seed):
    groups = np.array([*groups, *range(9)])
    found = deal_out(groups, Plan(folds, seed=seed))
    per_fold = [len(set(groups[found == fold])) for fold in range(folds)]
    assert sum(per_fold) == 9
    assert max(per_fold) - min(per_fold) <= 1


def test_too_few_documents_are_refused():
    with pytest.raises(ValueError, match="2 documents cannot be cut into 3 folds"):
        deal_out(np.array([0, 0, 1]), Plan(3))
    with pytest.raises(ValueError, match=r"all sequences are of one document.*--apart"):
        deal_out(np.array([0, 0, 0]), Plan(2))
    with pytest.raises(ValueError, match=r"there is one sequence.*pass more"):
        deal_out(np.array([0]), Plan(2))


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"members": 0}, {"drawn": 0.0}])
def test_impossible_plans_are_refused(wrong):
    with pytest.raises(ValueError, match="treecrf: "):
        Plan(**wrong)


def feature_dicts():
    sentences, done = spoiled_rows()
    X = [[{"word": row[0]} for row in rows] for rows in sentences]
    return X, [[row[2] for row in rows] for rows in sentences], sentences, done


@pytest.mark.parametrize("members", [1, 2])
def test_no_model_has_seen_what_it_judges(members):
    """A label that only one document has is unknown to the models that judge it."""
    X, y, _, _ = feature_dicts()
    for s in range(6, 12):
        X[s][0], y[s][0] = {"word": "Zz"}, "B-ODD"
        if y[s][1].startswith("I-"):
            y[s][1] = "O"

    def chances(documents, together=True):
        how = {"documents": documents, "together": together}
        audit = audit_sequences(X, y, **how, members=members, **QUICK)
        return [one.probability for one in audit.judged if one.label == "ODD"]

    documents = [6 if s in range(6, 12) else s for s in range(120)]
    together, apart = chances(documents), chances(documents, together=False)
    assert len(together) == len(apart) == 6
    assert max(together) < 0.05
    assert np.median(apart) > 0.5
    assert apart == chances(list(range(120)))


def test_every_sequence_is_judged_once_and_progress_is_told():
    X, y, _, _ = feature_dicts()
    annotation, names = annotation_of(y)
    columns, offsets, ids, numeric = fit_columns(X, min_count=1)
    labels = np.array([annotation.labels.index(y_t) for own in names for y_t in own], np.int32)
    data = Sequences(offsets, ids, numeric, labels, np.ones(len(labels), np.float32))
    groups = np.arange(len(X)) // 3
    fit = CrossFit(data, annotation.labels, columns, groups, Settings(**QUICK), Plan(4, 2))
    told: list[tuple[int, int]] = []
    with Workers(1) as workers:
        judged = [one.sequences for one in fit.held_out(workers, lambda *n: told.append(n))]
    assert sorted(np.concatenate(judged).tolist()) == list(range(len(X)))
    assert told == [(i, 4 * 2 * 6) for i in range(1, 49)]


def test_the_result_does_not_depend_on_threads():
    X, y, _, _ = feature_dicts()
    one, two = (audit_sequences(X, y, **{**QUICK, "threads": n}) for n in (1, 2))
    assert one.findings == two.findings
    assert one.judged == two.judged
