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
BASE = {"storage", "labels"}
ENGINE_ROOT = BASE | {"engine"}
BOOSTING = ENGINE_ROOT | {
    f"engine/{room}"
    for room in ("encoding", "chain", "rules", "trees", "missing_values", "boosting")
}
ENGINE = BOOSTING | {f"engine/{room}" for room in ("perceptron", "memm", "future", "codes")}
MODELS = (
    ENGINE | {"models"} | {f"models/{room}" for room in ("secoc", "memm", "calibration", "spans")}
)
# What the modules of each room may import from the package, beside those of their own room.
ROOMS = {
    "": {"estimators", "cli"},
    "storage": set(),
    "labels": set(),
    "engine": BASE,
    "engine/encoding": ENGINE_ROOT,
    "engine/chain": ENGINE_ROOT,
    "engine/rules": ENGINE_ROOT | {"engine/chain"},
    "engine/trees": ENGINE_ROOT | {"engine/encoding"},
    "engine/missing_values": ENGINE_ROOT | {"engine/encoding", "engine/trees"},
    "engine/boosting": BOOSTING,
    "engine/perceptron": ENGINE_ROOT | {"engine/chain"},
    "engine/memm": BOOSTING,
    "engine/future": BOOSTING | {"engine/memm"},
    "engine/codes": BOOSTING | {"engine/perceptron"},
    "models": ENGINE,
    "models/secoc": ENGINE | {"models"},
    "models/memm": ENGINE | {"models"},
    "models/calibration": ENGINE | {"models"},
    "models/spans": ENGINE | {"models"},
    "pages": set(),
    "explain": ENGINE | {"models", "models/secoc", "models/memm", "pages"},
    "estimators": MODELS | {"explain"},
    "features": ENGINE_ROOT | {"engine/encoding", "features/kernels"},
    "features/kernels": ENGINE_ROOT,
    # word features are those of the pipe, and are imported where a model has them
    "columnar": ENGINE | {"models", "estimators", "features"},
    "evaluation": ENGINE | {"models", "models/memm", "models/spans", "columnar"},
    "pipeline": ENGINE
    | {"models", "models/secoc", "models/memm", "models/calibration", "models/spans"}
    | {"features", "evaluation", "explain"}
    | {"pipeline/tasks", "pipeline/gold", "pipeline/evidence", "pipeline/annotation"},
    "pipeline/tasks": BASE,
    "pipeline/annotation": ENGINE | {"models", "pipeline/tasks"},
    "pipeline/evidence": {"models", "pipeline/tasks"},
    "pipeline/gold": ENGINE | {"models", "evaluation", "pipeline/tasks"},
    "taggers": ENGINE
    | {"models", "models/calibration", "columnar", "evaluation"}
    | {"explain", "features", "pipeline", "pipeline/tasks"},
    "report": ENGINE | {"models", "columnar", "evaluation", "explain", "pages"},
    "serve": BASE | {"columnar", "explain", "pages", "pipeline", "pipeline/annotation", "taggers"},
    "corpora": BASE,
    "formats": BASE | {"corpora", "columnar"},
    "audit": ENGINE
    | {"models", "estimators", "columnar", "features", "pipeline", "pipeline/tasks", "corpora"}
    | {"configs", "formats", "pages"},
    "vectors": {"formats"},
    "lists": {"storage"},
    "letters": BASE | {"corpora", "evaluation", "pipeline", "pipeline/annotation"},
    "suggest": ENGINE | {"models", "models/spans", "evaluation", "formats"},
    # models for column files are trained and scored here; configs by spaCy
    "tuning": ENGINE | {"models", "columnar", "evaluation"},
    "distillation": BASE | {"corpora", "columnar", "pipeline"},
    "configs": {"formats"},
    # docs of .spacy files are read by what imports spaCy, where a part is such a file
    "dask": ENGINE
    | {"models", "models/secoc", "estimators", "columnar"}
    | {"formats", "pipeline", "pipeline/tasks", "pipeline/gold"},
    "distribute": ENGINE
    | {"models", "features", "pipeline", "pipeline/tasks", "pipeline/gold", "dask"},
}
# The command line stands above all rooms.
ROOMS["cli/shared"] = set(ROOMS)
ROOMS["cli/corpora"] = set(ROOMS)
ROOMS["cli"] = set(ROOMS)
MOST_MODULES = 25  # in a folder
# Modules of the engine that may import numba.
NUMBA = ("kernel", "kernel_cache", "kernel_parts", "intrinsics", "python_calls")
WITHOUT_SPACY = ("storage", "labels", "engine", "models", "explain", "estimators", "columnar")


def loaded_after(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter that ran this."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import spacy_treecrf; spacy_treecrf.__version__")
    assert "spacy_treecrf" in loaded
    heavy = {"numba", "llvmlite", "numpy", "spacy", "sklearn", "tqdm", "starlette", "dask"}
    assert not loaded & heavy


def test_estimator_loads_no_spacy_and_no_sklearn() -> None:
    loaded = loaded_after("from spacy_treecrf import BoostedCRF; BoostedCRF()")
    assert "numba" in loaded
    assert not loaded & {"spacy", "thinc", "sklearn", "pandas", "typer", "dask", "distributed"}


def test_models_for_column_files_load_no_spacy() -> None:
    """Those with clusters, vectors or gazetteers do, when they are read."""
    loaded = loaded_after("import spacy_treecrf.columnar.training, spacy_treecrf.cli.tag")
    assert "numba" in loaded
    assert not loaded & {"spacy", "thinc"}


def test_blank_spacy_pipelines_load_no_numba() -> None:
    """spaCy imports the factory of every installed plugin for any pipeline."""
    loaded = loaded_after("import spacy; assert spacy.blank('en').has_factory('treecrf')")
    assert "spacy_treecrf" in loaded
    assert not loaded & {"numba", "starlette", "uvicorn"}


def test_package_offers_the_estimators_and_nothing_it_does_not_have() -> None:
    from spacy_treecrf import BoostedCRF, estimators

    assert BoostedCRF is estimators.BoostedCRF
    defined = [getattr(estimators, name) for name in estimators.__all__]
    offered = {e.__name__ for e in defined if hasattr(e, "fit")} - {"SequenceEstimator"}
    assert set(spacy_treecrf.__all__) == offered | {"Lattice", "__version__"}
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


def room_of(path: Path) -> str:
    room = path.relative_to(PACKAGE).parent.as_posix()
    return "" if room == "." else room


def module_of(name: str) -> Path | None:
    """The file of the package that a full name of a module, or of something in it, belongs to."""
    root, *path = name.split(".")
    if root != PACKAGE.name:
        return None
    while path:
        here = PACKAGE.joinpath(*path)
        if here.with_suffix(".py").is_file():
            return here.with_suffix(".py")
        if here.is_dir():
            return here / "__init__.py"
        path.pop()
    return PACKAGE / "__init__.py"


def imported_modules(module: Path) -> set[Path]:
    found = {module_of(name) for name in imports(module)}
    return {path for path in found if path is not None and path != module}


def test_every_folder_is_a_room_with_rules() -> None:
    assert {room_of(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_what_their_room_may(module: Path) -> None:
    room = room_of(module)
    for imported in imported_modules(module):
        if imported != PACKAGE / "__init__.py":
            assert room_of(imported) in ROOMS[room] | {room}, f"{module} imports {imported}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside of functions and those for types count as well."""
    below = {module: imported_modules(module) for module in MODULES if module.stem != "__init__"}
    while below:
        leaves = [module for module, others in below.items() if not others & set(below)]
        assert leaves, f"a cycle among {sorted(str(m.relative_to(PACKAGE)) for m in below)}"
        for module in leaves:
            del below[module]


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {""}))
def test_rooms_say_what_lives_there_and_who_may_import_it(room: str) -> None:
    folder = PACKAGE / room
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES + 1, "beside __init__.py"
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf8")))
    assert doc is not None
    first, blank, *rest = doc.splitlines()
    assert first.endswith((".", ":"))
    assert not blank
    assert "import" in " ".join(rest)


def test_all_kernels_are_ours_and_neither_engine_nor_models_import_spacy() -> None:
    """A function that numba.njit makes crashes where a signal handler raises."""
    for module in MODULES:
        room = room_of(module)
        roots = {name.partition(".")[0] for name in imports(module)}
        if room != "engine" or module.stem not in NUMBA:
            assert not roots & {"numba", "llvmlite"}, module
        if room.split("/")[0] in WITHOUT_SPACY and module.stem not in (
            "word_features",
            "word_vectors",
        ):
            assert not roots & {"spacy", "thinc"}, module


def test_version_of_the_distribution_is_read_from_the_package() -> None:
    """Whether an installed distribution has it is tested with the wheel."""
    project = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf8")
    assert 'dynamic = ["version"]' in project
    assert 'version = { attr = "spacy_treecrf.__version__" }' in project
    assert re.fullmatch(r"\d+\.\d+\.\d+", spacy_treecrf.__version__)


def test_types_are_shipped() -> None:
    assert (resources.files("spacy_treecrf") / "py.typed").is_file()
