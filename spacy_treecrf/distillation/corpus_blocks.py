"""The blocks of a config that read what a student learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thinc.api import Config

Block = dict[str, Any]


@dataclass(frozen=True)
class CorpusBlocks:
    """The blocks of a config that read training data and held-out data."""

    train: Block
    dev: Block


def corpus_blocks(config: Config) -> CorpusBlocks:
    """The blocks that training.train_corpus and training.dev_corpus name; each must have a path."""
    training = config.interpolate()["training"]
    names = [training[key] for key in ("train_corpus", "dev_corpus")]
    if names[0] == names[1]:
        raise ValueError(
            f"treecrf: training.train_corpus and training.dev_corpus both name {names[0]!r}, but "
            "lessons and held-out data are different files; write a block for each"
        )
    return CorpusBlocks(*(_block_with_path(config, name) for name in names))


def _block_with_path(config: Config, name: Any) -> Block:
    block: Any = config
    for part in str(name).split("."):
        block = block.get(part) if isinstance(block, dict) else None
    if not isinstance(block, dict) or "path" not in block:
        raise ValueError(
            f"treecrf: the config has no setting 'path' in [{name}], so that lessons cannot be "
            "read there; use spacy_treecrf.Corpus.v1 or another reader with a path"
        )
    return block
