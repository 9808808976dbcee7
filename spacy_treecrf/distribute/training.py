"""Training of a pipeline as `spacy train` does it, but for the docs: these are on workers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    train_while_improving,
    update_meta,
)
from spacy.util import load_model_from_config, registry, resolve_dot_names
from thinc.api import Config, fix_random_seed

from spacy_treecrf.dask.connecting import connected
from spacy_treecrf.dask.crew import Crew
from spacy_treecrf.distribute.cluster_learner import ClusterLearner
from spacy_treecrf.distribute.doc_rows import DocRows
from spacy_treecrf.distribute.doc_state import DocState
from spacy_treecrf.distribute.plan import parts_of, plan_of
from spacy_treecrf.pipeline.pipe import TreeCRF


class Place(NamedTuple):
    """Where to train. scheduler: None starts workers on this machine, `workers` of them."""

    scheduler: str | None = None
    workers: int | None = None  # None: one for each core


class ModelsInterrupted(KeyboardInterrupt):
    """Ctrl-C after models of before were deleted. whole: folders that were written since"""

    def __init__(self, whole: list[str]) -> None:
        super().__init__()
        self.whole = whole


def train_on_cluster(config: Config, output: Path, place: Place, code: Path | None = None) -> None:
    """Train the pipeline of a config; write the folders that `spacy train` writes.

    code: A Python file with registered functions, which workers import too. Ctrl-C raises
    `ModelsInterrupted` from the first step on, when models of before are deleted.
    """
    seed = config.interpolate()["training"]["seed"]
    if seed is not None:
        fix_random_seed(seed)
    nlp = load_model_from_config(config, auto_fill=True)
    site = plan_of(nlp, code)
    filled = nlp.config.interpolate()
    parts = parts_of(filled)
    with connected(place.scheduler, place.workers) as client:
        crew = Crew(client, DocState)
        try:
            rows = DocRows(crew, site, parts, seed)
            rows.read()
            pipe = nlp.get_pipe(site.pipe)
            assert isinstance(pipe, TreeCRF)
            pipe.make_learner = partial(ClusterLearner, rows)
            _initialize(nlp, filled, rows)
            _Loop(nlp, rows, output).run()
        finally:
            crew.close()


def _stand_in(nlp: Language, rows: DocRows) -> Example:
    """An example for all docs of the workers, which spaCy hands from step to step."""
    doc = Doc(nlp.vocab, words=[rows.word])
    return Example(doc.copy(), doc)


def _initialize(nlp: Language, config: Config, rows: DocRows) -> None:
    training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    nlp._link_components()
    with nlp.select_pipes(disable=training["frozen_components"]):
        nlp.initialize(lambda: [_stand_in(nlp, rows)], sgd=training["optimizer"])


class _Loop:
    """Steps of training, each of which sees all docs, and the folders that are written."""

    def __init__(self, nlp: Language, rows: DocRows, output: Path) -> None:
        self.nlp, self.rows, self.output = nlp, rows, output
        self.whole: list[str] = []  # folders that are written
        config = nlp.config.interpolate()
        if config["training"]["seed"] is not None:
            fix_random_seed(config["training"]["seed"])
        self.settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        (self.dev,) = resolve_dot_names(config, [self.settings["dev_corpus"]])
        self.before_to_disk = create_before_to_disk_callback(self.settings["before_to_disk"])

    def run(self) -> None:
        try:
            clean_output_dir(self.output)
            self._train()
        except KeyboardInterrupt as interrupt:
            raise ModelsInterrupted(self.whole) from interrupt

    def _train(self) -> None:
        settings, nlp = self.settings, self.nlp
        frozen = settings["frozen_components"]
        with nlp.select_pipes(disable=frozen):
            log_step, end_log = settings["logger"](nlp, sys.stdout, sys.stderr)
        try:
            for _, info, is_best in self._steps():
                if is_best is not None:
                    self._know_strings()
                    with nlp.select_pipes(disable=frozen):
                        update_meta(settings, nlp, info)
                    self._save(is_best)
                    info["output_path"] = str(self.output / DIR_MODEL_LAST)
                log_step(info if is_best is not None else None)
        finally:
            end_log()
            self._save(False)

    def _steps(self) -> Iterator[tuple[Any, dict[str, Any], bool | None]]:
        settings, nlp = self.settings, self.nlp
        evaluate = create_evaluation_callback(nlp, self.dev, settings["score_weights"])
        steps: Iterator[tuple[Any, dict[str, Any], bool | None]] = train_while_improving(
            nlp,
            settings["optimizer"],
            self._epochs(),
            evaluate,
            dropout=settings["dropout"],
            accumulate_gradient=1,
            patience=settings["patience"],
            max_steps=settings["max_steps"],
            eval_frequency=settings["eval_frequency"],
            exclude=settings["frozen_components"],
            annotating_components=settings["annotating_components"],
            before_update=settings["before_update"],
        )
        return steps

    def _epochs(self) -> Iterator[tuple[int, list[Example]]]:
        """A step for each epoch."""
        epoch, example = 0, _stand_in(self.nlp, self.rows)
        while epoch != self.settings["max_epochs"] or not epoch:
            yield epoch, [example]
            epoch += 1

    def _know_strings(self) -> None:
        """Take over the strings of all docs, which a pipeline stores."""
        for string in self.rows.new_strings():
            self.nlp.vocab.strings.add(string)

    def _save(self, is_best: bool) -> None:
        last, best = self.output / DIR_MODEL_LAST, self.output / DIR_MODEL_BEST
        with (
            self._writing(DIR_MODEL_LAST),
            self.nlp.use_params(self.settings["optimizer"].averages),
        ):
            self.before_to_disk(self.nlp).to_disk(last)
        if is_best:
            with self._writing(DIR_MODEL_BEST):
                if best.exists():
                    shutil.rmtree(best)
                shutil.copytree(last, best)

    @contextmanager
    def _writing(self, folder: str) -> Iterator[None]:
        """Know that a folder is not whole until it is written."""
        self.whole = [name for name in self.whole if name != folder]
        yield
        self.whole.append(folder)
