"""`average`: files of `train`, and pipelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_treecrf.storage import container
from spacy_treecrf.taggers.loading import load_model
from tests.cli.calls import good, process, refused
from tests.columnar.tiny_columns import tiny_file, trained
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp
from tests.tiny import new, tiny_data


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models of the same data that differ by their seeds."""
    folder = tmp_path_factory.mktemp("average")
    data = tiny_file(folder, "train.conll")
    paths = [folder / f"{seed}.treecrf" for seed in range(2)]
    for seed, path in enumerate(paths):
        trained(data, seed=seed, subsample=0.6).save(path)
    return paths


def test_files_become_one_that_tags(shared: Path, files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "both.treecrf"
    good("average", *files, "-o", output)
    learned = load_model(str(output))[0]
    trees = [load_model(str(path))[0].potentials.n_trees for path in files]
    assert learned.potentials.n_trees == sum(trees)
    assert good("tag", output, shared / "test.conll").strip()
    assert "exists; use --force" in refused("average", *files, "-o", output)
    good("average", *files, "-o", output, "--force")


def test_pipelines_become_one_that_spacy_loads(tmp_path: Path) -> None:
    for seed in range(2):
        model = {"@architectures": "spacy_treecrf.BoostedCRF.v1", "subsample": 0.6, "seed": seed}
        trained_nlp("ents", model=model).to_disk(tmp_path / f"{seed}")
    output = tmp_path / "new folder" / "average"
    call = ["average", tmp_path / "0", tmp_path / "1", "-o", output]
    done = process(call, tmp_path)
    assert done.returncode == 0, done.stderr
    marginals = []
    for path in (tmp_path / "0", tmp_path / "1", output):
        nlp = spacy.load(path)
        doc = nlp.make_doc("Ada met Bob in Rome.")
        marginals.append(pipe_of(nlp).marginals(doc))
    one, other, mean = marginals
    assert not np.allclose(one, other)
    between = (mean >= np.minimum(one, other) - 0.1) & (mean <= np.maximum(one, other) + 0.1)
    assert between.all()
    assert "exists; name another folder" in refused(*call)
    good(*call, "--force")
    assert sorted(path.name for path in output.parent.iterdir()) == ["average"]


def test_what_cannot_be_averaged_is_refused(
    shared: Path, files: list[Path], tmp_path: Path
) -> None:
    out = ["-o", tmp_path / "out"]
    assert "nothing to average" in refused("average", files[0], *out)
    assert "is a model file, and" in refused("average", files[0], shared / "pipeline", *out)
    assert "columns differ" in refused("average", files[0], shared / "weak.treecrf", *out)
    assert "there is no model" in refused("average", tmp_path / "a", tmp_path / "b", *out)
    new(threads=1).fit(*tiny_data()).save(tmp_path / "own.treecrf")
    assert "BoostedCRF.average" in refused("average", files[0], tmp_path / "own.treecrf", *out)
    memm = {"@architectures": "spacy_treecrf.MEMM.v1"}
    trained_nlp("ents", model=memm).to_disk(tmp_path / "memm")
    message = refused("average", shared / "pipeline", tmp_path / "memm", *out)
    assert "holds a MEMM; only boosted CRFs" in message
    assert not (tmp_path / "out").exists()


def test_features_of_words_are_part_of_the_average(tmp_path: Path) -> None:
    data = tiny_file(tmp_path, "train.conll")
    lists = {name: tmp_path / f"{name}.txt" for name in ("names", "others")}
    lists["names"].write_text("Ada\nBob\n", encoding="utf8")
    lists["others"].write_text("Rome\n", encoding="utf8")
    models = []
    for seed, name in enumerate(("names", "names", "others")):
        models.append(tmp_path / f"{seed}.treecrf")
        option = ["--features", f"gazetteer.known={lists[name]}", "--set", f"seed={seed}"]
        good("train", data, "-o", models[-1], "--rounds", "4", *option)
    good("average", *models[:2], "-o", tmp_path / "both.treecrf")
    averaged, first = (load_model(str(path))[1] for path in (tmp_path / "both.treecrf", models[0]))
    words = [container.dump(model.words.to_state()) for model in (averaged, first)]
    assert words[0] == words[1]
    message = refused("average", models[0], models[2], "-o", tmp_path / "no.treecrf")
    assert "train them with the same --features" in message
