"""Models of the tests of the command line, for attacks on them, and the mark of long attacks."""

import pytest

from tests.cli.conftest import shared

__all__ = ["shared"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/hardening" in item.path.as_posix() and item.get_closest_marker("slow"):
            item.add_marker("attack")
