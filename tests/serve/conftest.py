"""A small trained pipeline, and a server for it that tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.tiny_pipes import trained_nlp
from tests.serve.servers import Server


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "tiny"
    trained_nlp("ents").to_disk(folder)
    return folder


@pytest.fixture(scope="session")
def server(model: Path) -> Iterator[Server]:
    with Server(model) as running:
        yield running


@pytest.fixture(scope="session")
def strict_server(model: Path) -> Iterator[Server]:
    """A server that takes little and waits briefly."""
    with Server(model, "--max-bytes", "1000", "--timeout", "1", "--queue", "5") as running:
        yield running
