"""What the package loads, how its parts depend on each other, and what it ships."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

import spacy_treecrf

PACKAGE = Path(spacy_treecrf.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# What the modules of each part may import from the package.
LAYERS = {
    "engine": {"engine"},
    "models": {"engine", "models"},
    "estimators": {"engine", "models", "estimators"},
    "features": {"engine", "features"},
    "pipeline": {"engine", "models", "features", "pipeline"},
    "corpora": {"pipeline", "corpora"},
    "columnar": {"engine", "models", "estimators", "columnar"},
    "evaluation": {
        "engine",
        "models",
        "estimators",
        "features",
        "pipeline",
        "columnar",
        "evaluation",
    },
    "tuning": {"tuning"},
}
WITHOUT_SPACY = ("engine", "models", "estimators", "columnar")


def loaded_after(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter that ran this."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import spacy_treecrf; spacy_treecrf.__version__")
    assert "spacy_treecrf" in loaded
    assert not loaded & {"numba", "llvmlite", "numpy", "spacy", "sklearn", "tqdm"}


def test_estimator_loads_no_spacy_and_no_sklearn() -> None:
    loaded = loaded_after("from spacy_treecrf import BoostedCRF; BoostedCRF()")
    assert "numba" in loaded
    assert not loaded & {"spacy", "thinc", "sklearn", "pandas", "typer"}


def test_blank_spacy_pipelines_load_no_numba() -> None:
    """spaCy imports the factory of every installed plugin for any pipeline."""
    loaded = loaded_after("import spacy; assert spacy.blank('en').has_factory('treecrf')")
    assert "spacy_treecrf" in loaded
    assert "numba" not in loaded


def test_package_offers_the_estimators_and_nothing_it_does_not_have() -> None:
    from spacy_treecrf import BoostedCRF, estimators

    assert BoostedCRF is estimators.BoostedCRF
    defined = [getattr(estimators, name) for name in estimators.__all__]
    offered = {e.__name__ for e in defined if hasattr(e, "fit")} - {"SequenceEstimator"}
    assert set(spacy_treecrf.__all__) == offered | {"__version__"}
    for name in offered:
        assert getattr(spacy_treecrf, name) is getattr(estimators, name)
    with pytest.raises(AttributeError, match="'spacy_treecrf' has no attribute 'BoostedCRFs'"):
        _ = spacy_treecrf.BoostedCRFs


def imports(module: Path) -> Iterator[str]:
    """Full names of the modules that a module imports, also inside of functions."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_from_the_layers_below(module: Path) -> None:
    layer = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    allowed = LAYERS.get(layer)
    for name in imports(module):
        root, *path = name.split(".")
        if root == "spacy_treecrf" and path and allowed is not None:
            assert path[0] in allowed, f"{module} imports {name}"


def test_only_the_engine_imports_numba_and_neither_it_nor_models_import_spacy() -> None:
    for module in MODULES:
        layer = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
        roots = {name.partition(".")[0] for name in imports(module)}
        if layer != "engine":
            assert not roots & {"numba", "llvmlite"}, module
        if layer in WITHOUT_SPACY:
            assert not roots & {"spacy", "thinc"}, module


def test_version_of_the_distribution_is_read_from_the_package() -> None:
    """Whether an installed distribution has it is tested with the wheel."""
    project = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf8")
    assert 'dynamic = ["version"]' in project
    assert 'version = { attr = "spacy_treecrf.__version__" }' in project
    assert re.fullmatch(r"\d+\.\d+\.\d+", spacy_treecrf.__version__)


def test_types_are_shipped() -> None:
    assert (resources.files("spacy_treecrf") / "py.typed").is_file()
