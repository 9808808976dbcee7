"""Independent trainings as tasks on a cluster: each runs as a whole on some worker."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from spacy_treecrf.dask.connecting import connected
from spacy_treecrf.dask.crew import TIMED_OUT, WAIT_SECONDS, Crew
from spacy_treecrf.engine.setting import refused
from spacy_treecrf.estimators import SECOCCRF, BoostedCRF
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences, checked
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.secoc.bits import BitsTrainer, RunAll

Calls = Sequence[tuple[Any, ...]]  # a function that travels, and its arguments


@contextmanager
def independent_calls(
    client: Client | str | None,
) -> Iterator[Callable[[Calls], Iterable[Any]]]:
    """A function that runs calls on a cluster, and yields what they return, as it comes.

    A function that several calls have is sent once to each worker. What is still running when the
    caller leaves is cancelled.
    """
    with connected(client) as cluster:
        _check_workers(cluster)
        yield lambda calls: (result for _, result in _results(cluster, calls))


def _check_workers(client: Client) -> None:
    """Wait for a worker; refuse those that do not have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=WAIT_SECONDS)
    except TIMED_OUT as error:
        raise ValueError(
            f"treecrf: the cluster has had no worker for {WAIT_SECONDS:.0f} seconds; start some "
            "with `dask worker`"
        ) from error
    crew = Crew(client)
    crew.check_versions(crew.present())


def _results(client: Client, calls: Calls) -> Generator[tuple[int, Any], None, None]:
    """The number of each call and what it returned, as it comes."""
    if not calls:
        return
    functions = {id(call[0]): call[0] for call in calls}
    sent = dict(
        zip(functions, client.scatter(list(functions.values()), broadcast=True), strict=True)
    )
    numbers: dict[Future, int] = {}
    try:
        for number, (function, *args) in enumerate(calls):
            numbers[client.submit(_call, sent[id(function)], *args, pure=False)] = number
        for future in as_completed(list(numbers)):
            yield numbers[future], future.result()
    except (KilledWorker, CancelledError) as error:
        raise ValueError(
            "treecrf: workers died, and with them what their trainings need; look into their logs, "
            "or give them more memory"
        ) from error
    finally:
        client.cancel(list(numbers))


def _in_order(client: Client, calls: Calls) -> Generator[Any, None, None]:
    """What each call returned, in the order of the calls."""
    waiting: dict[int, Any] = {}
    following = 0
    with closing(_results(client, calls)) as results:
        for number, result in results:
            waiting[number] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def average(
    X: FeatureSequences,
    y: LabelSequences,
    X_dev: FeatureSequences | None = None,
    y_dev: LabelSequences | None = None,
    *,
    seeds: Iterable[int],
    client: Client | str | None = None,
    **settings: Any,
) -> BoostedCRF:
    """The `BoostedCRF.average` of models that differ by their seeds, each trained on some worker.

    X, y, X_dev, y_dev: As `BoostedCRF.fit` takes them.
    seeds: Of the models, in the order of the average.
    client: The cluster, or the address of its scheduler. None starts a `LocalCluster` of this
    machine's cores, and closes it afterwards.
    settings: Those of `BoostedCRF`; `threads` is 1 unless given.
    """
    chosen = list(seeds)
    if not chosen:
        raise ValueError("treecrf: seeds is empty; name a seed for each model of the average")
    X, y = checked(X, y, "X", "y", soft=True)
    if X_dev is not None and y_dev is not None:
        X_dev, y_dev = checked(X_dev, y_dev, "X_dev", "y_dev")
    fitting = _Fitting((X, y, X_dev, y_dev), {"threads": 1, **settings})
    for seed in chosen:
        BoostedCRF(**{**fitting.settings, "seed": seed})._recipe()  # refuses wrong settings
    with connected(client) as cluster:
        _check_workers(cluster)
        return BoostedCRF.average(_in_order(cluster, [(fitting, seed) for seed in chosen]))


class _Fitting:
    """A training on given data, but for its seed."""

    def __init__(self, data: tuple[Any, ...], settings: dict[str, Any]) -> None:
        self.data = data
        self.settings = settings

    def __call__(self, seed: int) -> BoostedCRF:
        return BoostedCRF(**{**self.settings, "seed": seed}).fit(*self.data)


def output_code(
    X: FeatureSequences,
    y: LabelSequences,
    X_dev: FeatureSequences | None = None,
    y_dev: LabelSequences | None = None,
    *,
    client: Client | str | None = None,
    **settings: Any,
) -> SECOCCRF:
    """The `SECOCCRF` whose bits are learned by themselves, each (on each fold) on some worker.

    X, y, X_dev, y_dev: As `SECOCCRF.fit` takes them.
    client: As of `average`.
    settings: Those of `SECOCCRF`, with training="columns" and without history: other bits depend on
    each other.
    """
    code = _CodeOnCluster(**settings)
    _refuse_dependent_bits(code)
    with connected(client) as cluster, ExitStack() as stack:
        _check_workers(cluster)
        code._run_all = lambda learner, tasks: stack.enter_context(
            closing(_in_order(cluster, [(learner, *task) for task in tasks]))
        )
        code.fit(X, y, X_dev, y_dev)
    found = SECOCCRF(**settings)
    found.model_, found.integer_labels_ = code.model_, code.integer_labels_
    return found


class _CodeOnCluster(SECOCCRF):
    _run_all: RunAll

    def _train(self, trainer: Trainer) -> None:
        assert isinstance(trainer, BitsTrainer)
        trainer.learn_elsewhere(self._run_all)
        super()._train(trainer)


def _refuse_dependent_bits(code: SECOCCRF) -> None:
    settings = code._recipe().settings
    if settings.history != 0:
        raise refused("history", settings.history, "0 on a cluster, where no bit sees another")
    if settings.training != "columns":
        raise refused(
            "training",
            settings.training,
            "'columns' on a cluster, where bits are learned by themselves",
        )
    if code.warm_start:
        raise refused("warm_start", True, "False on a cluster")
