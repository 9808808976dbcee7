"""Models that several tests of commands use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.columnar.tiny_columns import tiny_file, trained
from tests.pipeline.tiny_pipes import trained_nlp


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a good and a weak model for column files, and a pipeline; read only."""
    folder = tmp_path_factory.mktemp("cli")
    train = tiny_file(folder, "train.conll")
    tiny_file(folder, "test.conll", n=20, seed=7)
    trained(train).save(folder / "good.treecrf")
    trained(tiny_file(folder, "few.conll", n=3, seed=3), rounds=1).save(folder / "weak.treecrf")
    trained_nlp("ents").to_disk(folder / "pipeline")
    return folder
