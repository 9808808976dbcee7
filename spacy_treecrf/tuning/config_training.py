"""Trainings of a config of spaCy on given files, here or on another machine."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from spacy.language import Language
from spacy.util import import_file, load_config_from_str
from thinc.api import Config

from spacy_treecrf.tuning.journal import Result
from spacy_treecrf.tuning.space import Settings
from spacy_treecrf.tuning.training import run_training

# spaCy's loop draws from generators of the whole process, and so does the collector of scores.
_ONE_AT_A_TIME = threading.Lock()
ARCHITECTURES = "spacy_treecrf."
FACTORY = "treecrf"


@dataclass(frozen=True)
class ConfigTraining:
    """A training of a config on two files, or folders of them."""

    config: Config  # with the paths of the data
    train: Path
    dev: Path
    code: Path | None = None  # a Python file with functions that the config names

    def __call__(self, settings: Settings, fold: int) -> Result:
        return run_training(self.config, settings, fold)

    def packed(self) -> PackedTraining:
        text = with_one_thread(self.config).to_str(interpolate=False)
        code = None if self.code is None else self.code.read_text(encoding="utf-8")
        return PackedTraining(text, _contents(self.train), _contents(self.dev), code)


@dataclass(frozen=True)
class PackedTraining:
    """A training of a config with the contents of its files, by their paths in their folder."""

    config: str
    train: dict[str, bytes]
    dev: dict[str, bytes]
    code: str | None

    def __call__(self, settings: Settings, fold: int) -> Result:
        with _ONE_AT_A_TIME, TemporaryDirectory(prefix="treecrf-tune-") as folder:
            if self.code is not None:
                code = Path(folder) / "code.py"
                code.write_text(self.code, encoding="utf-8")
                import_file("treecrf_tune_code", code)
            config = load_config_from_str(self.config)
            train = _written(Path(folder) / "train", self.train)
            dev = _written(Path(folder) / "dev", self.dev)
            return run_training(with_paths(config, train, dev), settings, fold)

    def packed(self) -> PackedTraining:
        return self


def with_paths(config: Config, train: Path, dev: Path) -> Config:
    """The config with other data."""
    changed = config.copy()
    corpora = changed.get("corpora", {})
    for part, path in (("train", train), ("dev", dev)):
        if "path" not in corpora.get(part, {}):
            raise ValueError(
                f"treecrf: the config has no setting 'corpora.{part}.path' to put data there; use "
                "spacy.Corpus.v1 readers in [corpora.train] and [corpora.dev]"
            )
        corpora[part]["path"] = str(path)
    return changed


def with_one_thread(config: Config) -> Config:
    """The config with models of treecrf that take one thread, unless it names their number."""
    changed = config.copy()
    for component in changed.get("components", {}).values():
        if component.get("factory") == FACTORY and "model" not in component:
            defaults = Language.get_factory_meta(FACTORY).default_config or {}
            component["model"] = dict(defaults["model"])
        model = component.get("model", {})
        if str(model.get("@architectures")).startswith(ARCHITECTURES) and not model.get("threads"):
            model["threads"] = 1
    return changed


def _contents(path: Path) -> dict[str, bytes]:
    """A file, or the .spacy files of a folder, by their paths in their folder."""
    files = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    folder = path if path.is_dir() else path.parent
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _written(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the files; returns the path of the only one, or else that of the folder."""
    for name, content in files.items():
        path = folder / PurePosixPath(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / PurePosixPath(next(iter(files))) if len(files) == 1 else folder
