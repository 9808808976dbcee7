"""Mail between workers: which times count."""

from __future__ import annotations

import pytest

from spacy_treecrf.dask.mail import Call, _Mailbox
from spacy_treecrf.dask.worker_state import StateLost


def test_mail_of_before_and_of_a_forgotten_training_does_not_count() -> None:
    box = _Mailbox()
    box.begin("one", 2)
    box.put(Call("one", 1, 0), ("key",), "old")
    with pytest.raises(StateLost):
        box.take(Call("one", 1, 0), ("key",), 0.0)
    box.put(Call("one", 2, 0), ("key",), "new")
    assert box.take(Call("one", 2, 0), ("key",), 0.0) == "new"
    box.forget("one")
    with pytest.raises(StateLost):
        box.take(Call("one", 2, 0), ("key",), 0.0)


def test_a_training_that_was_forgotten_by_mistake_goes_on() -> None:
    box = _Mailbox()
    box.begin("one", 2)
    box.forget("one")
    box.begin("one", 3)
    box.put(Call("one", 3, 0), ("key",), "new")
    assert box.take(Call("one", 3, 0), ("key",), 0.0) == "new"
