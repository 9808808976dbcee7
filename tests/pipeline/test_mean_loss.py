"""The loss that training shows."""

from __future__ import annotations

import pytest

from spacy_treecrf.pipeline.mean_loss import MeanLoss


def test_one_dict_shows_the_mean_of_its_steps_and_a_new_one_begins_anew() -> None:
    mean = MeanLoss()
    shown = 0.0
    for loss, expected in ((4.0, 4.0), (2.0, 3.0), (3.0, 3.0)):
        shown = mean.after(shown, loss)
        mean.end_step()
        mean.end_step()  # a step without updates
        assert shown == pytest.approx(expected)
    assert mean.after(0.0, 1.0) == 1.0
    mean.end_step()
    assert mean.after(0.0, 5.0) == 5.0


def test_updates_of_one_step_add_up() -> None:
    mean = MeanLoss()
    shown = mean.after(mean.after(0.0, 1.0), 2.0)
    assert shown == 3.0
    mean.end_step()
    assert mean.after(shown, 1.0) == 2.0


def test_what_others_put_there_stays() -> None:
    assert MeanLoss().after(10.0, 1.0) == 11.0
