"""What has to hold of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def assert_refused(work: Callable[[], Any], *parts: str, error: type = ValueError) -> None:
    """The work raises an error of ours whose message holds all the parts."""
    with pytest.raises(error, match=r"^treecrf: ") as caught:
        work()
    for part in parts:
        assert part in str(caught.value)
